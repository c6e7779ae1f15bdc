// Package trace follows what one request causes: its way through gateway, supervisor, actor and commit, and on through
// timers and the outbox to webhooks and other instances, also after a restart and at another node. It is OpenTelemetry's
// API, made so that nothing is done where nobody collects traces: every method of a nil *Tracer or *Span does nothing.
//
// A span travels in the request that it is of, in the context of calls that have one (Span.In, Of), and in rows and
// messages as the text that Parent returns.
package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Header is that of W3C Trace Context; its value is what Begin takes and Span.Parent returns.
const Header = "Traceparent"

const carried = "traceparent"

// Tracer begins spans. Nil: there are none.
type Tracer struct{ of trace.Tracer }

// New returns a tracer of a provider's.
func New(of trace.Tracer) *Tracer { return &Tracer{of} }

// Kinds of spans.
const (
	Server   = trace.SpanKindServer
	Client   = trace.SpanKindClient
	Internal = trace.SpanKindInternal
)

// Begin begins a span below one that came from elsewhere. Without a parent that can be read it is the first of a trace.
func (t *Tracer) Begin(parent, name string, kind trace.SpanKind) *Span {
	if t == nil {
		return nil
	}
	return t.begin(outside(parent), name, kind)
}

func outside(parent string) context.Context {
	return propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{carried: parent})
}

// Continue is Begin for what somebody else has caused: without a parent nobody follows it, and there is no span.
func (t *Tracer) Continue(parent, name string, kind trace.SpanKind) *Span {
	if t == nil || parent == "" {
		return nil
	}
	return t.Begin(parent, name, kind)
}

func (t *Tracer) begin(ctx context.Context, name string, kind trace.SpanKind, more ...trace.SpanStartOption) *Span {
	ctx, span := t.of.Start(ctx, name, append(more, trace.WithSpanKind(kind))...)
	return &Span{tracer: t, ctx: ctx, span: span}
}

// Span is a piece of work. It may be used by one goroutine after the other.
type Span struct {
	tracer *Tracer
	ctx    context.Context //nolint:containedctx // that of spans below it
	span   trace.Span
	commit trace.Span // nil: none is under way
}

// Below begins a span of the same process below this one.
func (s *Span) Below(name string) *Span {
	if s == nil {
		return nil
	}
	return s.tracer.begin(s.ctx, name, Internal)
}

type spanKey struct{}

// In returns ctx with the span, for Of.
func (s *Span) In(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// Of returns the span of a context; nil when nobody follows what is done in it.
func Of(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// Parent names the span to another process; "" for nil.
func (s *Span) Parent() string {
	if s == nil {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(s.ctx, carrier)
	return carrier[carried]
}

// ID is that of the trace; "" for nil.
func (s *Span) ID() string {
	if s == nil {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// Set adds attributes, name after value.
func (s *Span) Set(pairs ...string) {
	if s == nil {
		return
	}
	for i := 0; i < len(pairs); i += 2 {
		s.span.SetAttributes(attribute.String(pairs[i], pairs[i+1]))
	}
}

// Answered adds the status of an HTTP answer.
func (s *Span) Answered(status int) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status < 100 || status >= 500 {
		s.span.SetStatus(codes.Error, "")
	}
}

// Committing begins the commit of the work.
func (s *Span) Committing() {
	if s != nil {
		_, s.commit = s.tracer.of.Start(s.ctx, "commit")
	}
}

// Committed ends the commit, if one is under way.
func (s *Span) Committed(err error) {
	if s == nil || s.commit == nil {
		return
	}
	end(s.commit, err)
}

// End ends the work. NB: errors may quote data, which a collector must not get: a span says only that there was one.
func (s *Span) End(err error) {
	if s != nil {
		end(s.span, err)
	}
}

func end(of trace.Span, err error) {
	if err != nil {
		of.SetStatus(codes.Error, "")
	}
	of.End()
}
