package ceiling

import (
	"encoding/binary"
	"encoding/json"
	"strconv"
	"sync"
	"time"
)

// The requests, as far as they are looked at. A RawMessage is passed on as it came.
type (
	createRequest struct {
		WorkflowID json.RawMessage `json:"workflowId"`
		Data       struct {
			Public json.RawMessage `json:"svcPublic"`
		} `json:"data"`
	}
	eventRequest struct {
		InstanceID string `json:"instanceId"`
		Event      struct {
			Name string          `json:"name"`
			Data json.RawMessage `json:"data"`
		} `json:"event"`
	}
)

// instance is a record. Its svcPublic is the data of the create and its svcPrivate
// that of the last event: to merge them would need maps.
type instance struct {
	id         string
	workflowID json.RawMessage // a string, with its quotes

	mu struct {
		sync.Mutex
		public, private json.RawMessage
		node            string
		entries         uint64 // how many history has
		history         []byte // encoded, with commas between the entries
	}
}

// targets says where an event leads. An event that is not here leads nowhere.
var targets = map[string]string{"submit": "review", "return": "draft", "approve": "approved"}

const start = "draft"

// move appends a history entry and returns it. The caller holds the lock.
func (i *instance) move(event, target string) (entry []byte) {
	h := i.mu.history
	if len(h) > 0 {
		h = append(h, ',')
	}
	begin := len(h)
	h = append(h, `{"user":"bench","startState":["`...)
	h = append(h, i.mu.node...)
	h = append(h, `"],"transitionEvent":`...)
	h = strconv.AppendQuote(h, event)
	h = append(h, `,"endState":["`...)
	h = append(h, target...)
	h = append(h, `"],"ts":"`...)
	h = time.Now().UTC().AppendFormat(h, "2006-01-02T15:04:05.000Z")
	h = append(h, `"}`...)
	i.mu.node, i.mu.history = target, h
	i.mu.entries++
	return h[begin:]
}

// entryKey is the key of the newest history entry. The caller holds the lock.
func (i *instance) entryKey() []byte {
	return binary.BigEndian.AppendUint64([]byte(i.id), i.mu.entries)
}

// appendRecord encodes the record. The caller holds the lock.
func (i *instance) appendRecord(dst []byte, minimal bool) []byte {
	dst = append(dst, `{"_id":"`...)
	dst = append(dst, i.id...)
	dst = append(dst, `","workflowId":`...)
	dst = append(dst, i.workflowID...)
	dst = append(dst, `,"svcPublic":`...)
	dst = append(dst, i.mu.public...)
	dst = append(dst, `,"svcPrivate":`...)
	dst = append(dst, i.mu.private...)
	if !minimal {
		dst = append(dst, `,"svcHistory":[`...)
		dst = append(dst, i.mu.history...)
		dst = append(dst, ']')
	}
	dst = append(dst, `,"states":[{"stateMachineId":"main","nodeId":"`...)
	dst = append(dst, i.mu.node...)
	return append(dst, `"}]}`...)
}

// appendReply encodes the answer to a create or an event. The caller holds the lock.
func (i *instance) appendReply(dst []byte, minimal bool) []byte {
	dst = append(dst, `{"workflowId":`...)
	dst = append(dst, i.workflowID...)
	dst = append(dst, `,"instanceId":"`...)
	dst = append(dst, i.id...)
	dst = append(dst, `","state":`...)
	dst = i.appendRecord(dst, minimal)
	return append(dst, '}')
}
