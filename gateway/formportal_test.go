package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

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
	want := "[" + strings.Repeat(leaveJSON+",", forms-1) + leaveJSON + "]"
	assert.Equal(t, want, w.body.String(), "got %d bytes", w.body.Len())
	assert.True(t, w.largest <= kernel.StreamBytes+len(leaveJSON)+1 && w.header.Get("Content-Length") == "", "%v %v", w.largest, w.header.Get("Content-Length"))
	perForm := testing.AllocsPerRun(1, func() {
		w.body.Reset()
		s.Server.ServeHTTP(w, request)
	}) / forms
	assert.LessOrEqual(t, perForm, 0.1, "allocations a form")
}
