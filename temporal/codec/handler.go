package codec

import (
	"net/http"
	"net/url"
	"slices"

	"go.temporal.io/sdk/converter"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// HandlerOptions configures [NewHandler].
type HandlerOptions struct {
	// Authorize says whether a request may see what it asks for; an error is
	// answered with 403 and not shown. It is required: whoever may ask a codec
	// server reads everything that it can decrypt.
	Authorize func(r *http.Request) error
	// Origins are web interfaces whose pages may ask, such as
	// "https://temporal.example.com"; none means no page may.
	Origins []string
	// MaxBodyBytes bounds a request; zero means 16 MiB.
	MaxBodyBytes int64
	// ExternalStorage is that of the clients, for payloads kept there; the zero
	// value means there is none.
	ExternalStorage converter.ExternalStorage
}

const defaultMaxBodyBytes = 16 << 20

// NewHandler returns a codec server for Temporal's web interface and command
// line: POST /encode, /decode and /download, with any prefix before. Codecs are
// in the order of converter.NewCodecDataConverter.
//
// It fails with GENERAL_INVALID_INPUT for options out of bounds.
func NewHandler(opts HandlerOptions, codecs ...converter.PayloadCodec) (http.Handler, error) {
	if opts.Authorize == nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "HandlerOptions.Authorize is nil: say who may read decrypted payloads")
	}
	if opts.MaxBodyBytes < 0 {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "HandlerOptions.MaxBodyBytes is %d: give a positive number, or zero for 16 MiB", opts.MaxBodyBytes)
	}
	if opts.MaxBodyBytes == 0 {
		opts.MaxBodyBytes = defaultMaxBodyBytes
	}
	for _, origin := range opts.Origins {
		if parsed, err := url.Parse(origin); err != nil || parsed.Scheme == "" || parsed.Host == "" || parsed.Scheme+"://"+parsed.Host != origin {
			return nil, apcore.NewError(apcore.CodeInvalidInput, "HandlerOptions.Origins has %q: give scheme and host, such as https://temporal.example.com", origin)
		}
	}
	next, err := converter.NewPayloadHTTPHandler(converter.PayloadHTTPHandlerOptions{PreStorageCodecs: codecs, ExternalStorage: opts.ExternalStorage})
	if err != nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "HandlerOptions.ExternalStorage: %w", err)
	}
	opts.Origins = slices.Clone(opts.Origins)
	return &handler{opts: opts, next: next}, nil
}

type handler struct {
	opts HandlerOptions
	next http.Handler
}

// ServeHTTP answers a page's question before the request, then the request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.allowOrigin(w, r)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err := h.opts.Authorize(r); err != nil {
		http.Error(w, http.StatusText(http.StatusForbidden), http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, h.opts.MaxBodyBytes)
	h.next.ServeHTTP(w, r)
}

func (h *handler) allowOrigin(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !slices.Contains(h.opts.Origins, origin) {
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", origin)
	w.Header().Set("Access-Control-Allow-Credentials", "true")
	w.Header().Set("Access-Control-Allow-Methods", "POST, OPTIONS")
	w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Namespace")
}
