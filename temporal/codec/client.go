package codec

import (
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// ClientOptions returns the options of a client that encodes everything it and
// its workers send: payloads over the data converter that is set or the default
// one, messages and stack traces of failures, and the context of
// temporal.WithContext. Codecs are in the order of converter.NewCodecDataConverter.
// Give the workers' plugin the same codecs.
func ClientOptions(opts client.Options, codecs ...converter.PayloadCodec) client.Options {
	parent := opts.DataConverter
	if parent == nil {
		parent = converter.GetDefaultDataConverter()
	}
	opts.DataConverter = converter.NewCodecDataConverter(parent, codecs...)
	opts.FailureConverter = sdktemporal.NewDefaultFailureConverter(sdktemporal.DefaultFailureConverterOptions{
		DataConverter: opts.DataConverter, EncodeCommonAttributes: true,
	})
	opts.Interceptors = append(opts.Interceptors[:len(opts.Interceptors):len(opts.Interceptors)], temporal.NewClientInterceptor(codecs...))
	return opts
}
