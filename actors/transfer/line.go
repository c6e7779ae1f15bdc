// Package transfer carries instances from one store into another, as JSON lines of a format that is counted:
//
//	{"troupe": "instances", "format": 1, "businessKeys": true, "shards": 16, "definitions": [{"workflowId", "version", "sha256"}]}
//	{"workflowId", "instanceId", "record": {…}, "history": [{…}], "rows": [{"key", "value"}], "listed"}
//	…
//	{"instances": 2}
//
// The first line names the definitions that the instances have, with a sum of their text, and the last how many there
// were: a file without it was cut. The first says, too, whether instances hold business keys: then only a store with as many shards takes
// them, because a key decides the shard of its instance, whose id is of that shard. Between them is a line for each instance, with everything that is its own: the record
// (statemachine.Record.AppendJSON), all history entries as they are shown with data, and in base64 the rows that follow from neither: drafts,
// answers to idempotency keys, deliveries, incidents, decided tasks, comments, and its place in the list of its creator. Indexes, timers, open
// tasks and counters follow from these, and are written as commits write them.
package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"troupe/actors/catalog"
	"troupe/persistence"
	"troupe/statemachine/data"
)

const format = 1

type header struct {
	Troupe      string       `json:"troupe"`
	Format      int          `json:"format"`
	Keys        bool         `json:"businessKeys,omitempty"` // whether one of them holds its key
	Shards      int          `json:"shards,omitempty"`       // then, of the store that they come from
	Definitions []definition `json:"definitions"`
}

const kind = "instances"

type definition struct {
	Workflow string `json:"workflowId"`
	Version  uint64 `json:"version"`
	Sum      string `json:"sha256"`
}

type line struct {
	Workflow string            `json:"workflowId"`
	Instance string            `json:"instanceId"`
	Record   json.RawMessage   `json:"record"`
	History  []json.RawMessage `json:"history"`
	Rows     []row             `json:"rows,omitempty"`
	Listed   []byte            `json:"listed,omitempty"` // the row in the lists of its creator; of a form it follows from the record
}

// row is a row of the instance's own. Its key has no shard.
type row struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

func (r *row) UnmarshalJSON(text []byte) error {
	type plain row
	return data.DecodeObject(text, (*plain)(r))
}

type trailer struct {
	Instances *int64 `json:"instances"`
}

// tables are those whose rows come along.
var tables = []string{"draft", "reply", "delivery", "incident", "task", "taskdraft", "activity", "donetime"}

// sumOf is a sum of a definition's text; persistence.ErrNotFound when there is none.
func sumOf(c *catalog.Catalog, workflow string, version uint64) (string, error) {
	text, refs, err := c.Content(workflow, version)
	if err != nil {
		return "", err
	}
	all, err := json.Marshal([]any{text, refs}) // NB: maps are written in the order of their keys
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:]), nil
}

// isFor refuses a store into which not all instances can come.
func (h *header) isFor(store *persistence.Store) error {
	if here := int(store.Shards()); h.Keys && h.Shards != here {
		return fmt.Errorf("it has instances with keys from a store with %d shards, and this one has %d: import it into a new home, made with --shards %[1]d; nothing was imported", h.Shards, here)
	}
	return nil
}

// missing says which definitions of a header are not here as they are there.
func (h *header) missing(c *catalog.Catalog) error {
	var lack []string
	for _, d := range h.Definitions {
		sum, err := sumOf(c, d.Workflow, d.Version)
		switch {
		case errors.Is(err, persistence.ErrNotFound):
			lack = append(lack, fmt.Sprintf("%s version %d is not published here", d.Workflow, d.Version))
		case err != nil:
			return err
		case sum != d.Sum:
			lack = append(lack, fmt.Sprintf("%s version %d has other content here", d.Workflow, d.Version))
		}
	}
	if len(lack) == 0 {
		return nil
	}
	slices.Sort(lack)
	return fmt.Errorf("%s: publish these definitions first, or put their files into workflows/ of a standalone server's home; nothing was imported", strings.Join(lack, ", "))
}
