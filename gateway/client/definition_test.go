package client

import (
	"strings"
	"testing"

	"troupe/gateway/servertest"
)

func TestDefinition(t *testing.T) {
	s, _ := servertest.StartNotice(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	d, err := c.Definition(t.Context(), servertest.Notice)
	if err != nil || d.ID != servertest.Notice || !d.Current || !strings.Contains(d.Text, "id: notice") {
		t.Errorf("got %+v, %v", d, err)
	}
	_, err = c.Definition(t.Context(), "nothing")
	wantStatus(t, err, 404, "NotFound")
	if _, err := c.Definition(t.Context(), "a/b"); err == nil {
		t.Error("an id with a slash is asked for")
	}
}
