package apcore

import "context"

type hostRetriesKey struct{}

// WithHostRetries returns a context whose calls are repeated by their host, such
// as a durable engine: a [RetryMiddleware] leaves them alone, and the calls that
// they make in process too, so that attempts do not multiply. It is for hosts.
func WithHostRetries(ctx context.Context) context.Context {
	return context.WithValue(ctx, hostRetriesKey{}, true)
}

// hostRetries reports whether the host of a call repeats it.
func hostRetries(ctx context.Context) bool { return ctx.Value(hostRetriesKey{}) != nil }
