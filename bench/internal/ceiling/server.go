// Package ceiling has the two smallest servers of the workflow interface, as a measure for one that does everything
// (bench/README.md): net/http, httprouter and encoding/json, with data that stays raw and answers that are appended.
// No rights, no definition, no merge, no check of what is sent. The HTTP ceiling stores nothing; the durable one commits
// one Pebble batch with a sync before it answers. Answers are as long as those of troupe, also with their history, which
// is kept encoded.
package ceiling

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
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

// Open returns the durable ceiling with a new store in dir, or with an empty dir the HTTP ceiling.
func Open(dir string) (*Server, error) {
	if dir == "" {
		return newServer(nil), nil
	}
	return openStore(dir, vfs.Default)
}

func openStore(dir string, files vfs.FS) (*Server, error) {
	db, err := pebble.Open(dir, &pebble.Options{
		FS: files, ErrorIfExists: true, FormatMajorVersion: pebble.FormatNewest,
		MemTableSize: memTableBytes, Logger: quiet{},
		L0CompactionThreshold: 16, L0StopWritesThreshold: 64, // as in persistence, which gains by it
	})
	if err != nil {
		return nil, fmt.Errorf("open ceiling: %w", err)
	}
	return newServer(db), nil
}

func newServer(db *pebble.DB) *Server {
	s := &Server{router: httprouter.New(), db: db}
	const path = "/workflow/api/v1"
	s.router.POST(path+"/create", s.create)
	s.router.POST(path+"/event", s.event)
	s.router.GET(path+"/instance/:workflowId/:instanceId", s.load)
	s.router.GET("/readyz", func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
		w.WriteHeader(http.StatusOK)
	})
	return s
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
	if !decode(w, r, &request) {
		return
	}
	i := &instance{id: rand.Text(), workflowID: request.WorkflowID}
	i.mu.Lock()
	s.instances.Store(i.id, i)
	i.mu.public, i.mu.private, i.mu.node = request.Data.Public, json.RawMessage("{}"), "Start"
	s.commit(w, r, i, i.move("", start))
}

func (s *Server) event(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	var request eventRequest
	if !decode(w, r, &request) {
		return
	}
	found, ok := s.instances.Load(request.InstanceID)
	if !ok {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	i := found.(*instance)
	i.mu.Lock()
	target, known := targets[request.Event.Name]
	if !known {
		target = i.mu.node
	}
	i.mu.private = request.Event.Data
	s.commit(w, r, i, i.move(request.Event.Name, target))
}

func (s *Server) load(w http.ResponseWriter, r *http.Request, p httprouter.Params) {
	found, ok := s.instances.Load(p.ByName("instanceId"))
	if !ok {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	i := found.(*instance)
	i.mu.Lock()
	size := len(i.mu.history) + replyBytes
	reply := i.appendRecord(append(make([]byte, 0, size), `{"state":`...), isMinimal(r))
	i.mu.Unlock()
	answer(w, append(reply, '}'))
}

// replyBytes is enough for an answer without its history.
const replyBytes = 1 << 10

func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	body := make([]byte, max(0, r.ContentLength))
	_, err := io.ReadFull(r.Body, body)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

// commit stores the record with its newest entry and answers when they are durable. It unlocks the instance before it
// waits, so that events of one instance share a sync.
func (s *Server) commit(w http.ResponseWriter, r *http.Request, i *instance, entry []byte) {
	reply := i.appendReply(make([]byte, 0, len(i.mu.history)+replyBytes), isMinimal(r))
	if s.db == nil {
		i.mu.Unlock()
		answer(w, reply)
		return
	}
	batch := s.db.NewBatch()
	err := errors.Join(
		batch.Set([]byte(i.id), i.appendRecord(make([]byte, 0, replyBytes), true), nil),
		batch.Set(i.entryKey(), entry, nil),
		s.db.ApplyNoSyncWait(batch, pebble.Sync))
	i.mu.Unlock()
	if err == nil {
		err = errors.Join(batch.SyncWait(), batch.Close())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, reply)
}

func isMinimal(r *http.Request) bool { return r.Header.Get("Prefer") == "return=minimal" }

// answer writes a reply with its length: net/http would send a longer one in
// chunks, which the load generator does not read.
func answer(w http.ResponseWriter, reply []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
	_, _ = w.Write(reply) // an error means that the caller has gone
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}

// Fatalf must not return.
func (quiet) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
