package formportal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/quota"
	"troupe/actors/workflow/workflowtest"
)

// script is a portal that testdata/script speaks to.
type script struct {
	*house
	t    *testing.T
	made map[string]string // ids of forms by the names that the script gives
	set  []TemplateSource  // what was published last
	as   map[string]*identity.Principal
}

// TestScript plays testdata/script: who makes, reads, fills and submits which forms, and what becomes of them when templates and workflows change.
// "each WORD..." does what stands below it for each word, which is $x, with its slashes as blanks, and its number $i.
func TestScript(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := &script{t: t}
		datadriven.RunTest(t, path, func(_ *testing.T, cmd *datadriven.TestData) string {
			line := cmd.Cmd
			for _, arg := range cmd.CmdArgs {
				line += " " + arg.String()
			}
			return cmp.Or(strings.TrimSuffix(s.run(line, cmd.Input), "\n"), "done") + "\n"
		})
	})
}

// known are workflows and templates that a script names.
var known = map[string]string{
	"leave": workflowtest.Leave, "payroll": payroll, "approval": approval,
	"leave-of-clerks": leaveForm, "safety-of-clerks": safety,
	"leave-form": leaveTemplate, "approval-form": approvalTemplate, "feedback": feedbackTemplate, "off": offTemplate, "safety": safetyTemplate,
}

// texts are those that words name, and one for each line of the input.
func texts(words []string, input string) (all []string) {
	for _, word := range words {
		all = append(all, known[word])
	}
	for line := range strings.Lines(input) {
		all = append(all, line)
	}
	return all
}

func (s *script) caller(name string) *identity.Principal {
	if p := s.as[name]; p != nil {
		return p
	}
	return s.user(name)
}

// form is what a command asks for: USER WORKFLOW FORM.
func (s *script) form(words []string) FormRequest {
	return FormRequest{Caller: s.caller(words[0]), WorkflowID: words[1], InstanceID: cmp.Or(s.made[words[2]], words[2])}
}

func (s *script) run(line, input string) string {
	var words []string
	key := ""
	for _, word := range strings.Fields(line) {
		if value, ok := strings.CutPrefix(word, "key="); ok {
			key = value
		} else {
			words = append(words, word)
		}
	}
	command, words := words[0], words[1:]
	switch command {
	case "empty": // without workflows and templates
		s.house, s.set = emptyHouse(s.t), nil
	case "anew", "quotas": // with a portal of its own, with quotas or not
		var limits []quota.Limits
		if command == "quotas" {
			limits = append(limits, quota.Limits{EventsPerSecond: 0.001, CreatesPerSecond: 0.001, HistoryEntries: 1})
		}
		s.house, s.made, s.as = newHouse(s.t, limits...), map[string]string{}, map[string]*identity.Principal{}
	case "restart":
		s.restart()
	case "pass":
		d, err := time.ParseDuration(words[0])
		require.NoError(s.t, err)
		s.Pass(d)
	case "workflows":
		s.workflows(texts(words, input)...)
	case "templates": // published, and how often the store was written for it
		s.set = nil
		for _, text := range texts(words, input) {
			s.set = append(s.set, source(s.t, text))
		}
		return s.publishSet()
	case "reversed": // the same in another order
		slices.Reverse(s.set)
		return s.publishSet()
	case "touched": // the same, the last of them changed at another time
		last := &s.set[len(s.set)-1]
		parsed := *last.Parsed
		parsed.Modified = parsed.Modified.Add(time.Millisecond)
		last.Parsed = &parsed
		return s.publishSet()
	case "role": // KIND ROLE: what it is offered, of how many templates
		return fmt.Sprintf("%s, of %d", cmp.Or(ids(s.templates.OfRole(kinds[words[0]], words[1])), "none"), s.templates.Len())
	case "template": // KIND ID, and data to check
		t := s.templates.Get(kinds[words[0]], words[1])
		if t == nil {
			return "none"
		}
		enabled := s.templates.Enabled(kinds[words[0]], words[1]) == t
		return fmt.Sprintf("%s %s of %s, enabled: %t, fits: %v", t.Kind, t.Schema, t.Modified.UTC().Format(time.StampMilli), enabled, cmp.Or(t.Check(workflowtest.Value(input)), errors.New("yes")))
	case "somebody": // NAME USER PRIVILEGE...
		s.as[words[0]] = &identity.Principal{ID: identity.UserID(words[1]), Privileges: words[2:]}
	case "create": // NAME USER TEMPLATE WORKFLOW
		of := s.creating(words[1], words[2], strings.Join(words[3:], ""), key)
		id, err := s.Create(s.t.Context(), of)
		assert.Equal(s.t, err == nil, id != "", "an id beside %v", err)
		return s.named(words[0], id, err)
	case "instance": // NAME USER WORKFLOW: by group B
		reply, err := s.Router.Create(s.t.Context(), &message.Create{Caller: s.caller(words[1]), WorkflowID: words[2]})
		if err != nil {
			return said(err)
		}
		return s.named(words[0], reply.InstanceID, nil)
	case "each", "lines": // each WORDS …: the lines of the input for each of them; lines: once
		var out []string
		if command == "lines" {
			words = []string{""}
		}
		for i, of := range words {
			for each := range strings.Lines(input) {
				each, data, _ := strings.Cut(each, "|")
				each = strings.TrimSpace(strings.NewReplacer("$x", strings.ReplaceAll(of, "/", " "), "$i", strconv.Itoa(i)).Replace(each))
				out = append(out, each+": "+cmp.Or(s.run(each, strings.TrimSpace(data)), "done"))
			}
		}
		return strings.Join(out, "\n")
	case "read":
		return s.shown(s.form(words))
	case "save":
		_, err := s.SaveDraft(s.t.Context(), &DraftRequest{FormRequest: s.form(words), Data: workflowtest.Value(input)})
		return said(err)
	case "drop":
		_, err := s.SaveDraft(s.t.Context(), &DraftRequest{FormRequest: s.form(words)})
		return said(err)
	case "submit":
		reply, err := s.Submit(s.t.Context(), &SubmitRequest{FormRequest: s.form(words), Data: workflowtest.Value(input), Retry: retry(key, input)})
		if err != nil {
			return said(err)
		}
		again := ""
		if key != "" { // NB: the whole answer is the same
			again = s.named(words[2]+" with "+key, string(reply.AppendRecord(nil)), nil)
		}
		return strings.TrimSpace(string(reply.States) + " " + again)
	case "send": // USER WORKFLOW FORM EVENT: by group B
		r := s.form(words)
		_, err := s.Try(r.Caller, r.WorkflowID, r.InstanceID, words[3], "", "")
		return said(err)
	case "where": // USER FORM
		return cmp.Or(s.where(words[0], s.made[words[1]]), "nowhere")
	case "private": // USER WORKFLOW FORM
		return string(s.record(words[0], words[1], s.made[words[2]]).Private)
	case "count": // USER: current forms
		return strconv.Itoa(len(s.list(words[0], form.KindForm, form.Current)))
	default:
		s.t.Fatalf("unknown command %q", command)
	}
	return ""
}

var kinds = map[string]form.Kind{"form": form.KindForm, "checklist": form.KindChecklist}

func (s *script) publishSet() string {
	before := s.Store.Metrics().Appended
	s.mustPublish(s.set...)
	return fmt.Sprintf("writes: %d", s.Store.Metrics().Appended-before)
}

// named keeps the id of what was made, which is the same as before where a request is repeated.
func (s *script) named(name, id string, err error) string {
	switch before := s.made[name]; {
	case err != nil:
		return said(err)
	case before == id:
		return "the same"
	case before != "":
		return "another"
	}
	s.made[name] = id
	return ""
}

func said(err error) string {
	if err == nil {
		return "done"
	}
	of := failure.Of(err)
	return strings.TrimSuffix(fmt.Sprintf("%v: %s", of.Kind, of.Reason), ": ")
}

func (s *script) shown(r FormRequest) string {
	v, err := s.Form(s.t.Context(), &r)
	if err != nil {
		return said(err)
	}
	template, draft := "none", "none"
	if v.Template != nil {
		template = v.Template.Name.For()
	}
	if v.Draft != nil {
		draft = string(v.Draft.Data)
	}
	return fmt.Sprintf("%s %s %q of %s, template %s, status %q, submission: %t, %d entries, data %s, draft %s, editable: %t",
		v.Category, v.Summary.FormType, v.Summary.Name.For(), v.Summary.By, template, v.Summary.Status, v.Summary.SubmissionID != "", v.Sequence, v.Data, draft, v.Editable)
}
