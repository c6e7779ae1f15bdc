package data_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"troupe/statemachine/data"
)

// body is about 1 KB of the sort that clients send.
func body() data.Value {
	var lines []string
	for i := range 6 {
		lines = append(lines, fmt.Sprintf(`{"sku":"A-%04d","quantity":%d,"price":%d.50,"note":"deliver to the back door, ring twice"}`, i, i+1, 10*i))
	}
	return data.Value(`{"workflowId":"invoice-approval","data":{"svcPublic":{"customerId":"c-81726","requester":"anna.schmidt","amount":1830.75,"currency":"EUR","due":"2026-12-24","urgent":false,"address":{"street":"Königsallee 1","city":"Düsseldorf","zip":"40212"},"lines":[` +
		strings.Join(lines, ",") + `]},"svcPrivate":{"autoLimit":1000,"cost":[1,2,3,4.5],"token":null}}}`)
}

var patch = data.Value(`{"data":{"svcPublic":{"amount":1900.25,"approvedBy":"bert.brecht","approvedAt":"2026-11-21T10:20:30.123Z","comment":"agreed by telephone with the customer","urgent":null,"address":{"city":"Neuss"}}}}`)

func measure(b *testing.B, name string, bytes int, do func()) {
	b.Run(name, func(b *testing.B) {
		b.SetBytes(int64(bytes))
		b.ReportAllocs()
		for b.Loop() {
			do()
		}
	})
}

// BenchmarkBody has what a request of 1 KB needs. The standard library's check, which is less strict, is there for comparison.
func BenchmarkBody(b *testing.B) {
	compact := body()
	spaced := []byte(strings.NewReplacer(",", ", ", ":", ": ").Replace(string(compact)))
	respelled := data.Value(strings.Replace(compact.String(), "1830.75", "1830.750", 1))
	inner, _ := compact.Lookup("data")
	public, _ := inner.Lookup("svcPublic")
	measure(b, "Clean/Compact", len(compact), func() { _, _ = data.Clean(compact) })
	measure(b, "Clean/Spaced", len(spaced), func() { _, _ = data.Clean(spaced) })
	measure(b, "Clean/StandardValid", len(compact), func() { json.Valid(compact) })
	measure(b, "Merge", len(compact)+len(patch), func() { data.Merge(compact, patch) })
	measure(b, "Set", 0, func() { _, _ = data.Set(compact, data.Path{"data", "svcPublic", "amount"}, data.Value("7")) })
	measure(b, "Equal", 0, func() { data.Equal(compact, respelled) })
	for _, key := range []string{"customerId", "amount", "lines", "missing"} {
		measure(b, "Lookup/"+key, 0, func() { public.Lookup(key) })
	}
	measure(b, "Compare/Integers", 0, func() { data.Compare(data.Value("1830"), data.Value("1000")) })
	measure(b, "Compare/Fractions", 0, func() { data.Compare(data.Value("1830.75"), data.Value("1e3")) })
}
