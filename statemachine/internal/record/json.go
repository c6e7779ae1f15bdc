package record

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

// portable is a record as JSON: what people read as it is, and the sections in base64.
type portable struct {
	Version    uint64          `json:"version"`
	Sequence   uint64          `json:"sequence"`
	CreatedAt  time.Time       `json:"createdAt"`
	UpdatedAt  time.Time       `json:"updatedAt"`
	States     json.RawMessage `json:"states"`
	Redirect   string          `json:"svcRedirect,omitempty"`
	Public     json.RawMessage `json:"svcPublic"`
	Private    json.RawMessage `json:"svcPrivate"`
	Memory     []byte          `json:"memory,omitempty"`
	Attachment []byte          `json:"attachment,omitempty"`
	Timers     []byte          `json:"timers,omitempty"`
	Children   []byte          `json:"children,omitempty"`
	Parent     []byte          `json:"parent,omitempty"`
	Tasks      []byte          `json:"tasks,omitempty"`
	Jobs       []byte          `json:"jobs,omitempty"`
	Key        string          `json:"key,omitempty"`
}

// AppendJSON appends the record as a JSON object, without its chain.
func (r *Record) AppendJSON(dst []byte) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	to := json.NewEncoder(out)
	to.SetEscapeHTML(false) // NB: documents stay byte for byte
	err := to.Encode(&portable{
		Version: r.Version, Sequence: r.Sequence, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(), States: json.RawMessage(r.States), Redirect: r.Redirect,
		Public: json.RawMessage(r.Public), Private: json.RawMessage(r.Private),
		Memory: r.memory, Attachment: r.Attachment, Timers: r.timers, Children: r.children, Parent: r.parent, Tasks: r.tasks, Jobs: r.jobs, Key: r.Key,
	})
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// FromJSON returns the stored form of what AppendJSON wrote, with a chain. The documents are checked; whether it fits its
// definition, Restore says.
func FromJSON(text []byte, chain Chain) ([]byte, error) {
	var p portable
	if err := data.DecodeObject(text, &p); err != nil {
		return nil, err
	}
	for _, document := range []struct {
		name string
		text *json.RawMessage
		kind data.Kind
	}{{"states", &p.States, data.Array}, {"svcPublic", &p.Public, data.Object}, {"svcPrivate", &p.Private, data.Object}} {
		v, err := data.Clean(*document.text)
		if err == nil && v.Kind() != document.kind {
			err = fmt.Errorf("it must be an %v", document.kind)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", document.name, err)
		}
		*document.text = json.RawMessage(v)
	}
	dst := append([]byte(nil), recordFormat)
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, p.Version), p.Sequence)
	dst = packed.AppendTime(packed.AppendTime(dst, p.CreatedAt), p.UpdatedAt)
	dst = append(dst, chain[:]...)
	dst = packed.AppendText(dst, p.States)
	dst = packed.AppendText(dst, p.Redirect)
	dst = packed.AppendText(packed.AppendText(dst, p.Public), p.Private)
	dst = packed.AppendText(dst, p.Memory)
	dst = appendSections(dst, p.Attachment, p.Timers, p.Children, p.Parent, p.Tasks, []byte(p.Key), p.Jobs)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst, castagnoli)), nil
}
