package activity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/persistence/key"
	"troupe/statemachine"
)

var rowKey = key.Activity(nil, 1, key.ID{1}, 7, 2)

// rowSamples are rows as Parse returns them, each of whose fields has a value of its own.
func rowSamples() []Row {
	at := time.UnixMilli(1_800_000_000_123).UTC()
	return []Row{
		{Kind: Comment, At: at, User: "john", Text: "hello", Sequence: 7, Number: 2},
		{
			Kind: Assigned, At: at, User: "mary", Task: statemachine.ElementID{Sequence: 6, Number: 1}, Node: statemachine.Position{Machine: "main", Node: "review"},
			To: "john", Sequence: 7, Number: 2,
		},
	}
}

func TestARowIsReadAsItWasWritten(t *testing.T) {
	for _, want := range rowSamples() {
		got, err := Parse(rowKey, want.Append(nil))
		assert.True(t, err == nil && got == want, "got %+v, %v, want %+v", got, err, want)
	}
}

// FuzzParse holds that any bytes are refused as a row, or are one that is written and read again.
func FuzzParse(f *testing.F) {
	for _, r := range rowSamples() {
		f.Add(rowKey, r.Append(nil))
	}
	f.Add([]byte("x"), []byte{})
	f.Fuzz(func(t *testing.T, key, stored []byte) {
		of, err := Parse(key, stored)
		if err != nil {
			assert.Equal(t, Row{}, of, err)
			return
		}
		assert.True(t, of.Kind != 0 && of.Kind < kinds && of.Kind.String() != "", "got the kind %d", of.Kind)
		again, err := Parse(key, of.Append(nil))
		assert.True(t, err == nil && again == of, "%x: got %+v, then %+v, %v", stored, of, again, err)
	})
}
