package worker

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Paths of the monitor.
const (
	// HealthPath answers 200 while the worker is alive, draining included, and 503
	// once it has broken down or stopped.
	HealthPath = "/healthz"
	// ReadyPath answers 200 while the worker takes new work, and else 503 with the
	// reason.
	ReadyPath = "/readyz"
	// MetricsPath serves [Options].Metrics.
	MetricsPath = "/metrics"
)

// monitor serves a worker's state over HTTP.
type monitor struct {
	server *http.Server
	listen net.Listener
}

const monitorTimeout = 5 * time.Second

// startMonitor listens on an address; an empty one starts nothing.
func startMonitor(address string, w *Worker, metrics http.Handler) (*monitor, error) {
	if address == "" {
		return nil, nil
	}
	listen, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, apcore.NewError(apcore.CodeConfigInvalid, "the monitor cannot listen on Options.MonitorAddress %q: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc(HealthPath, func(rw http.ResponseWriter, _ *http.Request) { answer(rw, w.Healthy()) })
	mux.HandleFunc(ReadyPath, func(rw http.ResponseWriter, _ *http.Request) { answer(rw, w.Ready()) })
	if metrics != nil {
		mux.Handle(MetricsPath, metrics)
	}
	m := &monitor{server: &http.Server{Handler: mux, ReadHeaderTimeout: monitorTimeout}, listen: listen}
	go func() { _ = m.server.Serve(listen) }() // ends with stop
	return m, nil
}

func answer(rw http.ResponseWriter, err error) {
	if err == nil {
		_, _ = rw.Write([]byte("ok\n"))
		return
	}
	text := err.Error()
	if e := (*apcore.Error)(nil); errors.As(err, &e) {
		text = e.Message
	}
	http.Error(rw, text, http.StatusServiceUnavailable)
}

func (m *monitor) stop() {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), monitorTimeout)
	defer cancel()
	if m.server.Shutdown(ctx) != nil {
		_ = m.server.Close()
	}
}

// MonitorAddress is the host:port that the monitor listens on, empty while it
// does not.
func (w *Worker) MonitorAddress() string {
	if m := w.monitor.Load(); m != nil {
		return m.listen.Addr().String()
	}
	return ""
}

// Healthy is nil until the worker has broken down or stopped.
func (w *Worker) Healthy() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.broken != nil:
		return apcore.NewError(apcore.CodeInternal, "the worker has broken down: %w", w.broken)
	case w.state == stateStopped:
		return apcore.NewError(apcore.CodeInternal, "the worker has stopped")
	}
	return nil
}

// Ready is nil while the worker polls and its registry takes no more modules,
// unless the registry was left open on purpose. The error says what is missing.
func (w *Worker) Ready() error {
	if err := w.Healthy(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.state == stateNew:
		return apcore.NewError(apcore.CodeInternal, "the worker has not started to poll")
	case w.state == stateDraining:
		return apcore.NewError(apcore.CodeInternal, "the worker drains: it finishes what it has and takes nothing new")
	case w.sealed != nil && !w.sealed():
		return apcore.NewError(apcore.CodeInternal, "the registry is not sealed")
	}
	return nil
}
