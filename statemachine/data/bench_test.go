package data

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// body is about 1 KB of the sort that clients send.
func body() Value {
	var lines []string
	for i := range 6 {
		lines = append(lines, fmt.Sprintf(`{"sku":"A-%04d","quantity":%d,"price":%d.50,"note":"deliver to the back door, ring twice"}`, i, i+1, 10*i))
	}
	return Value(`{"workflowId":"invoice-approval","data":{"svcPublic":{"customerId":"c-81726","requester":"anna.schmidt","amount":1830.75,"currency":"EUR","due":"2026-12-24","urgent":false,"address":{"street":"Königsallee 1","city":"Düsseldorf","zip":"40212"},"lines":[` +
		strings.Join(lines, ",") + `]},"svcPrivate":{"autoLimit":1000,"cost":[1,2,3,4.5],"token":null}}}`)
}

var patch = Value(`{"data":{"svcPublic":{"amount":1900.25,"approvedBy":"bert.brecht","approvedAt":"2026-11-21T10:20:30.123Z","comment":"agreed by telephone with the customer","urgent":null,"address":{"city":"Neuss"}}}}`)

func BenchmarkClean(b *testing.B) {
	compact := body()
	spaced := []byte(strings.NewReplacer(",", ", ", ":", ": ").Replace(string(compact)))
	for _, c := range []struct {
		name string
		src  []byte
	}{{"Compact1KB", compact}, {"Spaced1KB", spaced}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Clean(c.src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// The standard library's check, which is less strict, for comparison.
	b.Run("StandardValid1KB", func(b *testing.B) {
		b.SetBytes(int64(len(compact)))
		b.ReportAllocs()
		for b.Loop() {
			if !json.Valid(compact) {
				b.Fatal("not valid")
			}
		}
	})
}

func BenchmarkMerge(b *testing.B) {
	target := body()
	b.SetBytes(int64(len(target) + len(patch)))
	b.ReportAllocs()
	for b.Loop() {
		Merge(target, patch)
	}
}

func BenchmarkSet(b *testing.B) {
	target := body()
	path := Path{"data", "svcPublic", "amount"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Set(target, path, Value("7")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	v := body()
	data, _ := v.Lookup("data")
	public, _ := data.Lookup("svcPublic")
	for _, key := range []string{"customerId", "amount", "lines", "missing"} {
		b.Run(key, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				public.Lookup(key)
			}
		})
	}
}

func BenchmarkCompare(b *testing.B) {
	for _, c := range []struct{ name, x, y string }{{"Integers", "1830", "1000"}, {"Fractions", "1830.75", "1e3"}} {
		b.Run(c.name, func(b *testing.B) {
			x, y := Value(c.x), Value(c.y)
			b.ReportAllocs()
			for b.Loop() {
				Compare(x, y)
			}
		})
	}
}

func BenchmarkEqual(b *testing.B) {
	x := body()
	y := Value(strings.Replace(x.String(), "1830.75", "1830.750", 1))
	b.ReportAllocs()
	for b.Loop() {
		if !Equal(x, y) {
			b.Fatal("not equal")
		}
	}
}
