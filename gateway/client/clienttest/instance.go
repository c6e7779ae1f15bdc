package clienttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// instance is one instance; public and private are compact JSON.
type instance struct {
	id, public, private, node, redirect string
	history                             []string
}

// targets is the definition: event to node.
var targets = map[string]string{"submit": "review", "approve": "approved"}

// Add makes an instance that stands at a node and returns its id. public is the
// JSON of its svcPublic.
func (s *Server) Add(public, node string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(compact([]byte(public)), "{}", node).id
}

func (s *Server) add(public, private, node string) *instance {
	i := &instance{id: fmt.Sprintf("01JD%022d", len(s.mu.instances)+1), public: public, private: private}
	s.mu.instances = append(s.mu.instances, i)
	s.commit(i, "", node)
	return i
}

// Move commits an entry, as if somebody had sent the event.
func (s *Server) Move(id, event, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(Workflow, id)
	if i == nil {
		s.t.Errorf("clienttest: move %s: there is no such instance", id)
		return
	}
	s.commit(i, event, node)
}

// commit writes an entry and wakes the watchers. The caller holds s.mu.
func (s *Server) commit(i *instance, event, node string) {
	from := i.node
	if from == "" {
		from = "Start"
	}
	i.node = node
	at := time.Date(2026, 11, 21, 10, 0, len(s.mu.log), 0, time.UTC)
	name, err := json.Marshal(event)
	if err != nil {
		s.t.Errorf("clienttest: event %q: %v", event, err)
	}
	entry := fmt.Sprintf(`{"user":%q,"startState":[%q],"transitionEvent":%s,"endState":[%q],"ts":%q}`,
		User, from, name, node, at.Format("2006-01-02T15:04:05.000Z"))
	i.history = append(i.history, entry)
	s.mu.log = append(s.mu.log, committed{i.id, fmt.Sprintf(`{"workflowId":%q,"instanceId":%q,"sequence":%d,"entry":%s,"states":%s}`,
		Workflow, i.id, len(i.history), entry, i.states())})
	close(s.mu.moved)
	s.mu.moved = make(chan struct{})
}

func (s *Server) find(workflow, id string) *instance {
	for _, i := range s.mu.instances {
		if workflow == Workflow && i.id == id {
			return i
		}
	}
	return nil
}

func (i *instance) states() string {
	return fmt.Sprintf(`[{"stateMachineId":"main","nodeId":%q}]`, i.node)
}

// record is the whole record, or that of a list with the named fields.
func (i *instance) record(fields ...string) string {
	has := func(name string) bool { return strings.Contains(","+strings.Join(fields, ",")+",", ","+name+",") }
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, `{"_id":%q,"workflowId":%q,"svcPublic":%s`, i.id, Workflow, i.public)
	if has("svcPrivate") {
		_, _ = fmt.Fprintf(&b, `,"svcPrivate":%s`, i.private)
	}
	if has("svcHistory") {
		_, _ = fmt.Fprintf(&b, `,"svcHistory":[%s]`, strings.Join(i.history, ","))
	}
	_, _ = fmt.Fprintf(&b, `,"states":%s`, i.states())
	if has("svcRedirect") && i.redirect != "" {
		_, _ = fmt.Fprintf(&b, `,"svcRedirect":%q`, i.redirect)
	}
	b.WriteByte('}')
	return b.String()
}

// full is the record that create, event and instance answer.
func (i *instance) full(r *http.Request) string {
	fields := []string{"svcPrivate", "svcRedirect"}
	if r.Header.Get("Prefer") != "return=minimal" {
		fields = append(fields, "svcHistory")
	}
	return i.record(fields...)
}

func (i *instance) setHeaders(w http.ResponseWriter) {
	w.Header().Set("ETag", fmt.Sprintf(`"%d"`, len(i.history)))
}

func (i *instance) answer(w http.ResponseWriter, r *http.Request) {
	i.setHeaders(w)
	_, _ = fmt.Fprintf(w, `{"workflowId":%q,"instanceId":%q,"state":%s}`, Workflow, i.id, i.full(r))
}

func (s *Server) create(w http.ResponseWriter, r *http.Request, body []byte) {
	var asked struct {
		WorkflowID string `json:"workflowId"`
		Data       struct{ SvcPublic, SvcPrivate json.RawMessage }
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		refuse(w, 400, "InvalidContent", err.Error())
		return
	}
	if asked.WorkflowID != Workflow {
		refuse(w, 404, "NotFound", "there is nothing here, or nothing that you may see")
		return
	}
	object := func(text json.RawMessage) string {
		if text == nil {
			return "{}"
		}
		return compact(text)
	}
	s.add(object(asked.Data.SvcPublic), object(asked.Data.SvcPrivate), "draft").answer(w, r)
}

func (s *Server) event(w http.ResponseWriter, r *http.Request, body []byte) {
	var asked struct {
		WorkflowID, InstanceID string
		Event                  struct {
			Name string
			Data json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		refuse(w, 400, "InvalidContent", err.Error())
		return
	}
	i := s.find(asked.WorkflowID, asked.InstanceID)
	target, known := targets[asked.Event.Name]
	switch tag := r.Header.Get("If-Match"); {
	case i == nil:
		refuse(w, 404, "NotFound", "there is nothing here, or nothing that you may see")
	case !known:
		refuse(w, 400, "InvalidContent", "unknown event")
	case tag != "" && tag != fmt.Sprintf(`"%d"`, len(i.history)):
		refuse(w, 412, "PreconditionFailed", "what the condition in the request demands does not hold, or not any more")
	case i.node == target:
		refuse(w, 409, "EventNotAllowed", "nothing takes this event in the present state")
	default:
		if asked.Event.Data != nil {
			i.public = compact(asked.Event.Data)
		}
		s.commit(i, asked.Event.Name, target)
		i.answer(w, r)
	}
}

func (s *Server) load(w http.ResponseWriter, r *http.Request, i *instance) {
	i.setHeaders(w)
	_, _ = fmt.Fprintf(w, `{"state":%s}`, i.full(r))
}

func (s *Server) events(w http.ResponseWriter, _ *http.Request, i *instance) {
	i.setHeaders(w)
	_, _ = fmt.Fprintf(w, `{"events":[{"name":"submit","guard":"unknown","transitions":[`+
		`{"stateMachineId":"main","nodeId":%[1]q,"targets":["approved"],"guard":"unknown"},`+
		`{"stateMachineId":"main","nodeId":%[1]q,"targets":["review"],"guard":"true"}],`+
		`"schema":{"type":"object","required":["days"]}},`+
		`{"name":"remind","guard":"true","transitions":[{"stateMachineId":"main","nodeId":%[1]q,"targets":[],"guard":"true"}],"schema":null}]}`, i.node)
}
