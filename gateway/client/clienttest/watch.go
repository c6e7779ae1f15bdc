package clienttest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// committed is an entry as a watcher is told of it. Its place is its position
// in the log, counted from 1.
type committed struct{ instance, data string }

// Drain ends the streams that are open, as a service does that stops. The
// service takes new ones.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.mu.draining)
	s.mu.draining = make(chan struct{})
}

// Forget lets no stream be resumed at a place before now.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.forgotten = len(s.mu.log)
}

// watch answers GET watch. The filter must be JSON and is not applied.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, workflow, id string) {
	s.mu.Lock()
	place, lost := len(s.mu.log), false
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.Atoi(last)
		if lost = err != nil || n > place || n < s.mu.forgotten; !lost {
			place = n
		}
	}
	known := workflow == Workflow && (id == "" || s.find(workflow, id) != nil)
	draining := s.mu.draining
	s.mu.Unlock()
	if !known {
		refuse(w, 404, "NotFound", "there is nothing here, or nothing that you may see")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	_, _ = fmt.Fprintf(w, "retry: 20\nid: %d\n\n: beat\n\n", place)
	if lost {
		_, _ = fmt.Fprintf(w, "event: lost\ndata: {\"message\":\"entries are missing\"}\nid: %d\n\n", place)
	}
	for {
		s.mu.Lock()
		moved, news, ended := s.mu.moved, s.mu.log[place:], draining != s.mu.draining
		s.mu.Unlock()
		if ended { // what comes after Drain is for the next stream
			return
		}
		var b strings.Builder
		for _, c := range news {
			if place++; id == "" || c.instance == id {
				_, _ = fmt.Fprintf(&b, "id: %d\nevent: entry\ndata: %s\n\n", place, c.data)
			}
		}
		_, _ = fmt.Fprint(w, b.String())
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-moved:
		case <-draining:
			return
		case <-r.Context().Done():
			return
		}
	}
}
