package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"troupe/actors/catalog"
	"troupe/actors/form"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/actors/inventory"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Exported says what Export has written.
type Exported struct {
	Instances int64 `json:"instances"`
	Left      int64 `json:"left"` // that cannot be read
	Shards    int   `json:"shards"`
}

// Export gives the lines of all instances that this node has, as they are at one moment. Those that cannot be read are
// left out, and left is told of each.
func Export(ctx context.Context, store *persistence.Store, c *catalog.Catalog, pace func(context.Context, int) error, give func(json.RawMessage) error, left, say func(string)) (Exported, error) {
	e := &exporting{store: store, catalog: c, give: give, left: left}
	here := inventory.Shards(store)
	if len(here) == 0 {
		return e.Exported, errors.New("this node has no shard")
	}
	e.Shards = len(here)
	e.at = store.SnapshotOf(here)
	defer func() { _ = e.at.Close() }() // read-only: nothing to lose
	if err := e.header(here); err != nil {
		return e.Exported, err
	}
	for _, sh := range here {
		say(fmt.Sprintf("%d instances written", e.Instances))
		err := e.at.Scan(key.RecordsPrefix(nil, sh), func(k, value []byte) error {
			parts, ok := key.Parse(k)
			if !ok {
				return persistence.ErrCorrupt
			}
			text, err := e.line(sh, parts, value)
			if err != nil {
				e.Left++
				e.left(fmt.Sprintf("%s/%s: %v", parts.Workflow, instanceid.Text(parts.ID), err))
				return ctx.Err()
			}
			e.Instances++
			if err := e.give(text); err != nil {
				return err
			}
			return pace(ctx, len(text))
		})
		if errors.Is(err, persistence.ErrCorrupt) {
			e.Left++
			e.left(fmt.Sprintf("more instances of shard %d: %v", sh, err))
			err = nil
		}
		if err != nil {
			return e.Exported, err
		}
	}
	text, err := json.Marshal(trailer{&e.Instances})
	if err == nil {
		err = e.give(text)
	}
	return e.Exported, err
}

type exporting struct {
	Exported
	store   *persistence.Store
	catalog *catalog.Catalog
	at      *persistence.Snapshot
	give    func(json.RawMessage) error
	left    func(string)
}

var errEnough = errors.New("seen enough")

func (e *exporting) header(here []key.Shard) error {
	h := header{Troupe: kind, Format: format, Definitions: []definition{}}
	for _, sh := range here {
		err := e.at.Scan(key.BusinessPrefix(nil, sh), func(_, _ []byte) error {
			h.Keys, h.Shards = true, int(e.store.Shards())
			return errEnough
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	err := e.at.Scan(key.DefinitionsPrefix(nil), func(k, _ []byte) error {
		parts, ok := key.Parse(k)
		if !ok {
			return persistence.ErrCorrupt
		}
		n, err := e.at.CountAll(key.Count(nil, key.EveryShard, parts.Workflow, parts.Number))
		if err != nil || n == 0 {
			return err
		}
		d := definition{Workflow: parts.Workflow, Version: parts.Number}
		if d.Sum, err = sumOf(e.catalog, d.Workflow, d.Version); err != nil {
			return err
		}
		h.Definitions = append(h.Definitions, d)
		return nil
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return e.give(text)
}

func (e *exporting) line(sh key.Shard, of key.Parts, stored []byte) (json.RawMessage, error) {
	in, err := inventory.Read(e.catalog, sh, of.Workflow, of.ID, stored)
	if err != nil {
		return nil, err
	}
	out := line{Workflow: of.Workflow, Instance: instanceid.Text(of.ID), History: []json.RawMessage{}}
	if out.Record, err = in.Record.AppendJSON(nil); err != nil {
		return nil, err
	}
	walk := history.NewWalker(e.at, sh, of.ID)
	for _, prefix := range key.InstancePrefixes(sh, of.ID) {
		err := e.at.Scan(prefix, func(k, value []byte) error {
			parts, _ := key.Parse(k)
			if parts.Table == "entry" {
				entry, err := walk.Next(parts.Number, value)
				if err == nil {
					out.History = append(out.History, entry.Shown(nil))
				}
				return err
			}
			if parts.Table == "job" {
				return nil // it waits anew where it comes to
			}
			if parts.Table == "task" {
				w := e.store.NewBatch(sh)
				defer w.Discard()
				if own, err := in.PutBehind(w, k, value); err != nil || !own {
					return err // an open one follows from the record
				}
			}
			out.Rows = append(out.Rows, row{bytes.Clone(k[2:]), bytes.Clone(value)})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if walk.N != in.State.Sequence || walk.Chain != in.Record.Chain {
		return nil, fmt.Errorf("its history has %d entries, and the record speaks of %d", walk.N, in.State.Sequence)
	}
	if in.Form == nil {
		listed, err := form.LoadListed(e.at, in.Spot())
		if err != nil {
			return nil, err
		}
		if listed != nil {
			out.Listed = listed.Append(nil)
		}
	}
	text := bytes.Buffer{}
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false) // NB: documents stay byte for byte
	err = to.Encode(&out)
	return bytes.TrimSpace(text.Bytes()), err
}
