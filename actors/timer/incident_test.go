package timer

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

var incident = Incident{Workflow: "order", Event: "after.PT1H.open", Error: "division by zero", At: time.UnixMilli(1_800_000_000_123).UTC()}

// placed says where it failed; incident does not.
var placed = Incident{
	Workflow: "order", Event: "after.PT1H.open", Error: "division by zero", At: time.UnixMilli(1_800_000_000_123).UTC(),
	Version: 3, File: "order.yaml", Line: 16, Expression: "1 / svcPublic.n",
}

func TestAnIncidentIsReadAsItWasWritten(t *testing.T) {
	if got, err := ParseIncident(incident.Append(nil)); err != nil || got != incident {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := ParseIncident(placed.Append(nil)); err != nil || got != placed {
		t.Errorf("got %+v, %v", got, err)
	}
	if n := len((Incident{Error: strings.Repeat("x", 1<<20), Version: 1, Expression: strings.Repeat("x", 1<<20)}).Append(nil)); n > 5000 {
		t.Errorf("an error of a megabyte takes %d bytes", n)
	}
}

func FuzzParseIncident(f *testing.F) {
	f.Add(incident.Append(nil))
	f.Add(placed.Append(nil))
	f.Fuzz(func(t *testing.T, stored []byte) {
		in, err := ParseIncident(stored)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("got %v", err)
			}
			return
		}
		again, err := ParseIncident(in.Append(nil))
		if err != nil || !bytes.Equal(again.Append(nil), in.Append(nil)) {
			t.Errorf("%+v is read as %+v, %v", in, again, err)
		}
	})
}
