package worker

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Metrics collects what the SDK, the activities and, where their middleware is
// installed, module calls measure, for one Prometheus endpoint:
//
//	metrics, err := worker.NewMetrics()
//	c, err := client.Dial(client.Options{MetricsHandler: metrics.ClientHandler()})
//	w, err := worker.New(c, queue, executor, worker.Options{MonitorAddress: ":9090", Metrics: metrics.Handler()})
//
// It has a registry of its own and touches no global one.
type Metrics struct {
	registry *prometheus.Registry
	provider *sdkmetric.MeterProvider
}

// NewMetrics makes an empty collection.
func NewMetrics() (*Metrics, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, apcore.NewError(apcore.CodeInternal, "the Prometheus exporter cannot be made: %w", err)
	}
	return &Metrics{registry: registry, provider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))}, nil
}

// ClientHandler is for client.Options.MetricsHandler: the SDK's own metrics and
// those of package activities.
func (m *Metrics) ClientHandler() client.MetricsHandler {
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: m.provider.Meter("temporal-sdk-go"), UseMonotonicCounters: true,
		OnError: func(error) {}, // a metric that is refused is not worth a worker
	})
}

// Provider is for further metrics, such as otelapcore.NewMetricsRecorder, which
// also counts the calls that modules make in process.
func (m *Metrics) Provider() metric.MeterProvider { return m.provider }

// Registry is for collectors of an application's own.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Handler serves the metrics in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
