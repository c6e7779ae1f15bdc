// Package otlp sends traces to a collector by OTLP over HTTP. It is on where OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set; nothing else here is started or linked into the way of a request.
package otlp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rs/zerolog"

	"troupe/actors/trace"
)

// Exporter collects the spans of the process and sends them.
type Exporter struct{ provider *sdk.TracerProvider }

// Open returns the exporter that the environment asks for; nil when it asks for none.
func Open(ctx context.Context, version string, log zerolog.Logger) (*Exporter, error) {
	to, err := collectorOf()
	if err != nil || to == nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	of, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "troupe"), attribute.String("service.version", version)),
		resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	// The library says there what it cannot do, such as reach the collector; it tries again with the next spans.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn().Err(err).Msg("traces cannot be sent") }))
	log.Info().Str("endpoint", to.url.Redacted()).Msg("traces are sent")
	return &Exporter{sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(of))}, nil
}

// Tracer begins spans that are sent; nil for nil.
func (e *Exporter) Tracer() *trace.Tracer {
	if e == nil {
		return nil
	}
	return trace.New(e.provider.Tracer("troupe"))
}

// Stop sends what is left, as long as ctx lasts and no longer than sendMax.
func (e *Exporter) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopMax)
	defer cancel()
	_ = e.provider.Shutdown(ctx) // NB: traces that are lost are no reason for a stop to fail
	return nil
}

const (
	sendMax = 10 * time.Second // of one request
	stopMax = 2 * time.Second
)

// collector implements otlptrace.Client. NB: that of the library, otlptracehttp, brings gRPC and html/template.
type collector struct {
	url     *url.URL
	headers http.Header
	client  http.Client
}

const (
	endpointName       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpointName = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	headersName        = "OTEL_EXPORTER_OTLP_HEADERS"
)

func collectorOf() (*collector, error) {
	name, text := tracesEndpointName, os.Getenv(tracesEndpointName)
	if text == "" {
		if name, text = endpointName, os.Getenv(endpointName); text == "" {
			return nil, nil
		}
		text = strings.TrimSuffix(text, "/") + "/v1/traces"
	}
	to, err := url.Parse(text)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return nil, fmt.Errorf("%s must be the address of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318", name)
	}
	c := &collector{url: to, headers: http.Header{"Content-Type": {"application/x-protobuf"}}}
	for pair := range strings.SplitSeq(os.Getenv(headersName), ",") {
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(value)
		if pair != "" && (!ok || err != nil) {
			return nil, fmt.Errorf("%s must be pairs such as authorization=Bearer%%20TOKEN, separated by commas", headersName)
		}
		if ok {
			c.headers.Set(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return c, nil
}

// Start and Stop have nothing to do.
func (*collector) Start(context.Context) error { return nil }

func (c *collector) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans once. NB: TracesData is on the wire what ExportTraceServiceRequest is, whose package brings gRPC.
func (c *collector) UploadTraces(ctx context.Context, spans []*v1.ResourceSpans) error {
	body, err := proto.Marshal(&v1.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendMax)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = c.headers.Clone()
	a, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }()
	_, _ = io.CopyN(io.Discard, a.Body, 64<<10) // so that the connection is used again
	if a.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the collector answers %s", a.Status)
	}
	return nil
}
