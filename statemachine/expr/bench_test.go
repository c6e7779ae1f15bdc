package expr

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// benchScope is an instance with 2*pairs + 4 members in svcPublic. The members
// that are read come last: what is in front of them has to be skipped.
func benchScope(b *testing.B, pairs int) *Scope {
	var text strings.Builder
	text.WriteString(`{"department":"sales"`)
	for i := range pairs {
		fmt.Fprintf(&text, `,"field%d":"value of field %d","count%d":%d`, i, i, i, i*100)
	}
	text.WriteString(`,"requester":"ada","amount":1500.50,"address":{"street":"Main Street 1","zip":"1010","city":"Wien"}}`)
	s := &Scope{
		Public:   mustData(b, text.String()),
		Private:  mustData(b, `{"note":"approved by the head of sales in March","autoLimit":2000}`),
		User:     User{ID: "bob", Roles: []string{"clerk", "approver", "manager"}},
		Instance: Instance{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", WorkflowID: "invoice", Version: 3, CreatedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
		Now:      time.Date(2026, 3, 2, 8, 30, 0, 0, time.UTC),
		In:       func(node string) bool { return node == "payment.paid" },
	}
	s.Event = &Event{Name: "submit", Data: mustData(b, `{"comment":"please","items":[`+strings.Repeat(`{"qty":3,"price":1.25},`, 19)+`{"qty":0,"price":1}]}`)}
	return s
}

func BenchmarkGuard(b *testing.B) {
	e := newEnv(b)
	for _, c := range []struct {
		name, src string
		pairs     int
	}{
		{"amount", `svcPublic.amount <= svcPrivate.autoLimit`, 4},
		{"amount/wide", `svcPublic.amount <= svcPrivate.autoLimit`, 20},
		{"requester", `user.id != svcPublic.requester`, 4},
		{"role", `"manager" in user.roles`, 4},
		{"in", `In("payment.paid")`, 4},
		{"event", `has(event.data.comment) && event.name == "submit"`, 4},
		{"arithmetic", `svcPublic.amount * 1.2 + 10 > 500`, 4},
		{"money", `svcPublic.amount * 0.19 + 4.9 > 250`, 4},
		{"time", `now - instance.createdAt > duration("48h")`, 4},
		{"loop", `event.data.items.exists(i, i.qty == 0)`, 4}, // 20 elements, tracked
	} {
		b.Run(c.name, func(b *testing.B) {
			s := benchScope(b, c.pairs)
			p, err := e.CompileBool(c.src)
			if err != nil {
				b.Fatal(err)
			}
			if ok, err := p.Bool(s); err != nil || !ok {
				b.Fatal(ok, err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Bool(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkValue(b *testing.B) {
	e, s := newEnv(b), benchScope(b, 4)
	for _, c := range []struct{ name, src string }{
		{"path", `svcPublic.address`},
		{"user", `user.id`},
		{"text", `"/invoices/" + instance.id`},
		{"map", `{"id": instance.id, "amount": svcPublic.amount, "address": svcPublic.address}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			p, err := e.Compile(c.src)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Value(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	e := newEnv(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.CompileBool(`svcPublic.amount <= svcPrivate.autoLimit && "manager" in user.roles`); err != nil {
			b.Fatal(err)
		}
	}
}
