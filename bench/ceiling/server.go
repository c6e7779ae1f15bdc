package ceiling

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/julienschmidt/httprouter"
)

// Server is one of the two ceilings, as an http.Handler. Its records live until
// Close; those on the disk are never read.
type Server struct {
	router    *httprouter.Router // built by Open, then only read
	instances sync.Map           // string to *instance
	db        *pebble.DB         // nil: nothing is stored
}

// memTableBytes is that of the store which is measured beside it.
const memTableBytes = 32 << 20

// Open returns the durable ceiling with a new store in dir, or with an empty dir
// the HTTP ceiling.
func Open(dir string) (*Server, error) {
	s := &Server{router: httprouter.New()}
	if dir != "" {
		var err error
		s.db, err = pebble.Open(dir, &pebble.Options{
			ErrorIfExists: true, FormatMajorVersion: pebble.FormatNewest,
			MemTableSize: memTableBytes, Logger: quiet{},
		})
		if err != nil {
			return nil, fmt.Errorf("open ceiling: %w", err)
		}
	}
	const path = "/workflow/api/v1"
	s.router.POST(path+"/create", s.create)
	s.router.POST(path+"/event", s.event)
	s.router.GET(path+"/instance/:workflowId/:instanceId", s.load)
	s.router.GET("/readyz", func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
		w.WriteHeader(http.StatusOK)
	})
	return s, nil
}

// Close ends the store. The caller has made sure that no request is running.
func (s *Server) Close() error {
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.router.ServeHTTP(w, r) }

func (s *Server) create(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	var request createRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	i := newInstance(rand.Text(), &request)
	i.mu.Lock()
	defer i.mu.Unlock()
	s.instances.Store(i.record.ID, i)
	s.commitAndAnswer(w, r, i)
}

func (s *Server) event(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	var request eventRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	i, err := s.find(request.WorkflowID, request.InstanceID)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.apply(&request)
	s.commitAndAnswer(w, r, i)
}

func (s *Server) load(w http.ResponseWriter, r *http.Request, p httprouter.Params) {
	i, err := s.find(p.ByName("workflowId"), p.ByName("instanceId"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	answer(w, recordReply{shown(r, &i.record)})
}

var errNotFound = errors.New("not found")

// find returns an instance if it is of the workflow. Its id and workflow never
// change, so they are read without the lock.
func (s *Server) find(workflowID, instanceID string) (*instance, error) {
	found, ok := s.instances.Load(instanceID)
	if !ok || found.(*instance).record.WorkflowID != workflowID {
		return nil, errNotFound
	}
	return found.(*instance), nil
}

// commitAndAnswer stores the record of an instance whose lock is held, and shows
// it.
func (s *Server) commitAndAnswer(w http.ResponseWriter, r *http.Request, i *instance) {
	if s.db != nil {
		value, err := json.Marshal(&i.record)
		if err == nil {
			err = s.db.Set([]byte(i.record.ID), value, pebble.Sync)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	answer(w, instanceReply{i.record.WorkflowID, i.record.ID, shown(r, &i.record)})
}

// shown is the record as the request wants it.
func shown(r *http.Request, full *record) *record {
	if r.Header.Get("Prefer") != "return=minimal" {
		return full
	}
	minimal := *full
	minimal.History = nil
	return &minimal
}

// answer writes a reply with its length: net/http would send a longer one in
// chunks, which the load generator does not read.
func answer(w http.ResponseWriter, reply any) {
	body, err := json.Marshal(reply)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // an error means that the caller has gone
}

// quiet drops what Pebble has to say.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}

// Fatalf must not return.
func (quiet) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
