package workflow_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
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

// TestQueryScript plays testdata/query: "publish" has definitions, of stock by a line "stock ID INDEX..."; "make NAME USER WORKFLOW" has the data of an instance, and "query
// USER WORKFLOW" a line for each part of a request. An instance is shown by its name, and its history as a number of entries. "fill WORKFLOW NAME" has a line for each
// instance, NAME0 and so on, "limits" sets those of plans, and "plan WORKFLOW" shows the plan of a query, and what it finds when that is little.
func TestQueryScript(t *testing.T) {
	datadriven.Walk(t, "testdata/query", func(t *testing.T, path string) {
		h := startQueries(t, query.Options{})
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
			case "make", "fill":
				if cmd.Cmd == "make" {
					ids[words[0]] = h.Make(users[words[1]], words[2], cmd.Input)
				} else {
					for n, public := range strings.Split(cmd.Input, "\n") {
						ids[fmt.Sprint(words[1], n)] = h.Make(boss, words[0], public)
					}
				}
				var pairs []string
				for name, id := range ids {
					pairs = append(pairs, id, name)
				}
				names = strings.NewReplacer(pairs...)
				h.AwaitIndexes()
				return "done\n"
			case "send": // NAME may be i0..9
				first, last, _ := strings.Cut(words[2], "..")
				name := strings.TrimRight(first, "0123456789")
				from, _ := strconv.Atoi(first[len(name):])
				to, _ := strconv.Atoi(cmp.Or(last, first[len(name):]))
				for n := from; n <= to; n++ {
					h.MustSend(users[words[0]], words[1], cmp.Or(ids[fmt.Sprint(name, n)], ids[words[2]]), words[3], cmd.Input)
				}
				return "done\n"
			case "limits":
				cmd.MaybeScanArgs(t, "probe", &h.Limits.ProbeKeys)
				cmd.MaybeScanArgs(t, "collect", &h.Limits.Collect)
				cmd.MaybeScanArgs(t, "sort", &h.Limits.Sort)
				return "done\n"
			case "plan":
				req, most := query.Request{WorkflowID: words[0]}, int64(math.MaxInt64)
				for line := range strings.Lines(cmd.Input) {
					if text, ok := strings.CutPrefix(line, "most "); ok {
						most, _ = strconv.ParseInt(strings.TrimSpace(text), 10, 64)
						continue
					}
					set(t, &req, strings.TrimSuffix(line, "\n"), ids)
				}
				return names.Replace(h.planned(req, most)) + "\n"
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
func (h *queries) asked(req *query.Request) string {
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

// planned is the plan of a query, and what it finds, which is what the slow and obvious query finds, whoever asks, whole and in pages. A page
// of ten reads no more keys than most.
func (h *queries) planned(req query.Request, most int64) (plan string) {
	h.t.Helper()
	stored := h.Instances(req.WorkflowID)
	for _, who := range []*identity.Principal{guest, boss} {
		req.Caller, req.Explain, req.Limit, req.Count = who, who == boss, 0, true
		want := obvious(h.t, stored, who, req.Filter, req.Sort)
		got, end, err := h.list(req)
		h.Must(err)
		assert.True(h.t, slices.Equal(got, want), "for %s: %s", who.ID, differ(stored, got, want))
		assert.Equal(h.t, int64(len(want)), end.Count, "for %s: count", who.ID)
		if plan = planOf(end); len(got) < 20 {
			plan = strings.TrimSpace(plan + ": " + strings.Join(got, " "))
		}
		req.Limit, req.Count = min(max(10, len(want)/4), 1000), false
		paged, err := h.pages(req)
		assert.True(h.t, err == nil && slices.Equal(paged, want), "for %s in pages: %v; %s", who.ID, err, differ(stored, paged, want))
		req.Limit = 10
		_, end, err = h.list(req)
		assert.True(h.t, err == nil && (end.Explain == nil || end.Explain.KeysRead <= most), "%v, a page of ten reads more keys than %d: %+v", err, most, end)
	}
	return plan
}
