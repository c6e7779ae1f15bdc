package gateway

import (
	"fmt"
	"strings"
	"testing"

	"troupe/actors/formportal"
	"troupe/gateway/internal/kernel"
)

// pieces takes an answer and notes the largest piece that it came in.
type pieces struct {
	recorder
	largest int
}

func (p *pieces) Write(text []byte) (int, error) {
	p.largest = max(p.largest, len(text))
	return p.recorder.Write(text)
}

// TestALongListIsStreamed holds that a list of any length needs the memory of one
// piece.
func TestALongListIsStreamed(t *testing.T) {
	const forms = 20_000
	s := startServer(t, Options{}, nil)
	s.portal.list = func(item func(*formportal.Summary) error) error {
		for range forms {
			if err := item(leaveForm); err != nil {
				return fmt.Errorf("list: %w", err)
			}
		}
		return nil
	}
	request := newTestRequest("GET", "/form-portal/forms/mycurrent", "", withPortal)
	w := &pieces{recorder: *newRecorder()}
	s.ServeHTTP(w, request)
	if want := "[" + strings.Repeat(leaveJSON+",", forms-1) + leaveJSON + "]"; w.body.String() != want {
		t.Errorf("got %d bytes, want %d", w.body.Len(), len(want))
	}
	if w.largest > kernel.StreamBytes+len(leaveJSON)+1 || w.header.Get("Content-Length") != "" {
		t.Errorf("the largest piece has %d bytes, Content-Length %q", w.largest, w.header.Get("Content-Length"))
	}
	if perForm := testing.AllocsPerRun(1, func() {
		w.body.Reset()
		s.Server.ServeHTTP(w, request)
	}) / forms; perForm > 0.1 {
		t.Errorf("%.2f allocations a form", perForm)
	}
}
