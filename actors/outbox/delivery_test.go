package outbox

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/data"
)

func deliveries() []Delivery {
	at := time.UnixMilli(1_800_000_000_123).UTC()
	return []Delivery{
		{Workflow: "order", Version: 3, Created: at, State: Pending, Next: at.Add(time.Second), Body: data.Value(`{"n":1}`)},
		{Workflow: "order", Version: 1, Created: at, State: Dead, Attempts: 9, Next: at, LastStatus: 500, LastError: "the answer was 500"},
		{Workflow: "leave", Version: 2, Created: at, State: Pending, Next: at, To: []string{"user:ann", "role:heads"}, Subject: "Größe", Text: "a\nb"},
		{Workflow: "order", Version: 3, Created: at, State: Pending, Next: at, Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	}
}

func TestADeliveryIsReadAsItWasWritten(t *testing.T) {
	for _, want := range deliveries() {
		stored := want.Append(nil)
		got, err := Parse(stored)
		assert.Equal(t, want.State, StateOf(stored))
		clear(stored) // it is the store's
		assert.True(t, err == nil && reflect.DeepEqual(*got, want), "got %+v, %v, want %+v", got, err, want)
	}
	long := Delivery{Workflow: "a", State: Dead, LastError: strings.Repeat("x", 1<<20)}
	assert.LessOrEqual(t, len(long.Append(nil)), 2000, "an error of a megabyte takes")
}

func FuzzParse(f *testing.F) {
	for _, d := range deliveries() {
		f.Add(d.Append(nil))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		d, err := Parse(stored)
		if err != nil {
			assert.ErrorIs(t, err, ErrDamaged)
			return
		}
		again, err := Parse(d.Append(nil))
		assert.True(t, err == nil && bytes.Equal(again.Append(nil), d.Append(nil)), "%+v is read as %+v, %v", d, again, err)
	})
}
