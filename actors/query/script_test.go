package query_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/query"
	"troupe/actors/workflow/workflowtest"
	"troupe/statemachine/data"
)

// TestScript plays testdata/script: "publish" has definitions, of stock by a line "stock ID INDEX..."; "make NAME USER WORKFLOW" has the data of an instance, and "query
// USER WORKFLOW" a line for each part of a request. An instance is shown by its name, and its history as a number of entries.
func TestScript(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		h := start(t, query.Options{})
		names, ids := strings.NewReplacer(), map[string]string{}
		users := map[string]*identity.Principal{
			"john": john, "mary": mary, "eve": eve, "member": member, "guest": guest, "boss": boss, "outsider": workflowtest.Principal("out", nil, string(identity.Workflows)),
		}
		datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
			h.t = t
			var words []string
			for _, arg := range cmd.CmdArgs {
				words = append(words, arg.Key)
			}
			switch cmd.Cmd {
			case "publish":
				var texts []string
				for text := range strings.SplitSeq(cmd.Input, "\n---\n") {
					if of := strings.Fields(text); of[0] == "stock" {
						text = stock(of[1], 1, of[2:]...)
					}
					texts = append(texts, text)
				}
				h.Publish(texts...)
				h.AwaitIndexes()
				return "done\n"
			case "make":
				ids[words[0]] = h.Make(users[words[1]], words[2], cmd.Input)
				var pairs []string
				for name, id := range ids {
					pairs = append(pairs, id, name)
				}
				names = strings.NewReplacer(pairs...)
				h.AwaitIndexes()
				return "done\n"
			case "send":
				h.MustSend(users[words[0]], words[1], ids[words[2]], words[3], cmd.Input)
				return "done\n"
			case "query":
				req := &query.Request{Caller: users[words[0]], WorkflowID: words[1]}
				for line := range strings.Lines(cmd.Input) {
					set(t, req, strings.TrimSuffix(line, "\n"), ids)
				}
				return names.Replace(h.asked(req)) + "\n"
			}
			t.Fatalf("unknown command %q", cmd.Cmd)
			return ""
		})
	})
}

// set sets a part of a request.
func set(t *testing.T, req *query.Request, line string, ids map[string]string) {
	part, value, _ := strings.Cut(line, " ")
	switch part {
	case "filter":
		for name, id := range ids {
			value = strings.ReplaceAll(value, "<"+name+">", id)
		}
		req.Filter = value
	case "sort":
		req.Sort = value
	case "cursor":
		req.Cursor = value
	case "fields":
		req.Fields = strings.Split(value, ",")
	case "languages":
		req.Languages = strings.Fields(value)
	case "limit":
		var err error
		req.Limit, err = strconv.Atoi(value)
		assert.NoError(t, err)
	case "explain":
		req.Explain = true
	case "everyones":
		req.Everyones = true
	default:
		t.Fatalf("unknown part %q", line)
	}
}

var historyShown = regexp.MustCompile(`"svcHistory":(\[.*?\]),"states"`)

// asked is the answer, whole and, where no limit is asked for, in a page, too.
func (h *harness) asked(req *query.Request) string {
	var out []string
	add := func(item []byte) error {
		out = append(out, historyShown.ReplaceAllStringFunc(string(item), func(text string) string {
			var entries []json.RawMessage
			shown := historyShown.FindStringSubmatch(text)[1]
			id, _ := data.Value(item).Lookup("_id")
			assert.Equal(h.t, string(h.StoredHistory(h.Store, h.ID(id.Text()))), shown, "the stored history")
			h.Must(json.Unmarshal([]byte(shown), &entries))
			return fmt.Sprintf(`"svcHistory":<%d>,"states"`, len(entries))
		}))
		return nil
	}
	end, err := h.Service.Query(h.t.Context(), req, add)
	if err != nil {
		assert.Empty(h.t, out, "items beside an error")
		return fmt.Sprintf("%v: %s", failure.Of(err).Kind, failure.Of(err).Reason)
	}
	if whole := slices.Clone(out); req.Limit == 0 {
		page := *req
		page.Limit, out = 1000, nil
		_, err := h.Service.Query(h.t.Context(), &page, add)
		assert.True(h.t, err == nil && slices.Equal(out, whole), "in a page: %v\n%s", err, strings.Join(out, "\n"))
	}
	assert.Empty(h.t, end.Next, "a page of all")
	if e := end.Explain; e != nil {
		e.Milliseconds = 0
		text, err := json.Marshal(e)
		h.Must(err)
		out = append(out, string(text))
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, "\n")
}
