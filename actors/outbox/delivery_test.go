package outbox

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"troupe/statemachine/data"
)

func deliveries() []Delivery {
	at := time.UnixMilli(1_800_000_000_123).UTC()
	return []Delivery{
		{Workflow: "order", Version: 3, Created: at, State: Pending, Next: at.Add(time.Second), Body: data.Value(`{"n":1}`)},
		{Workflow: "order", Version: 1, Created: at, State: Dead, Attempts: 9, Next: at, LastStatus: 500, LastError: "the answer was 500"},
		{Workflow: "leave", Version: 2, Created: at, State: Pending, Next: at, To: []string{"user:ann", "role:heads"}, Subject: "Größe", Text: "a\nb"},
	}
}

func TestADeliveryIsReadAsItWasWritten(t *testing.T) {
	for _, want := range deliveries() {
		stored := want.Append(nil)
		got, err := Parse(stored)
		clear(stored) // it is the store's
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	long := Delivery{Workflow: "a", State: Dead, LastError: strings.Repeat("x", 1<<20)}
	if n := len(long.Append(nil)); n > 2000 {
		t.Errorf("an error of a megabyte takes %d bytes", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, d := range deliveries() {
		f.Add(d.Append(nil))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		d, err := Parse(stored)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("got %v", err)
			}
			return
		}
		again, err := Parse(d.Append(nil))
		if err != nil || !bytes.Equal(again.Append(nil), d.Append(nil)) {
			t.Errorf("%+v is read as %+v, %v", d, again, err)
		}
	})
}
