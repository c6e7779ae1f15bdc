package endtoend

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"troupe/gateway/wiretest"
)

func portalFiles() map[string]string {
	return map[string]string{
		"identity.yaml": `roles:
  - {id: employee, privileges: [mod-form-portal, mod-form]}
users:
  - {id: ann, roles: [employee]}
  - {id: bob, roles: [employee]}
`,
		"workflows/leave.yaml": "id: leave\nstateMachines: {main: {states: {draft: {on: {submit: review}}, review: {type: final}}}}\n",
		"forms/leave.yaml":     "{id: leave-form, access: {roles: [employee]}, workflows: [leave], schema: {type: object}}\n",
		"forms/feedback.yaml":  "{id: feedback, access: {roles: [employee]}, schema: {type: object}}\n",
	}
}

func (p *program) desk(name string) user { return p.withCookie(p.home.session(name)) }

// making is a request for a form; "-" is no workflow.
func (u user) making(template, workflow string) request {
	return u.Posting("/form-portal/forms/create", `{"formId":"`+template+`","workflowId":"`+strings.Trim(workflow, "-")+`"}`)
}

func (u user) listed(t testing.TB, list string) (ids []string) {
	t.Helper()
	a := u.Get(t, "/form-portal/"+list)
	a.WantStatus(t, 200)
	for _, form := range wiretest.Decode[[]struct{ ID string }](t, a.Body) {
		ids = append(ids, form.ID)
	}
	return ids
}

// keptForm is what was acknowledged of a form.
type keptForm struct {
	workflow, id string
	draft        string // JSON; null after the submission
	submitted    string // the answer of the submission
	unsure       bool   // the last request has no answer
}

const submittedData = `{"days":1}`

func (f *keptForm) submission(u user) request {
	return u.Posting("/form-runtime/api/v1/submit", `{"workflowId":"`+f.workflow+`","instanceId":"`+f.id+`","data":`+submittedData+`}`, "Idempotency-Key: "+f.id)
}

// keepForm makes a form, saves it at most twice and perhaps submits it. It returns
// what was acknowledged, nil for nothing, and whether the program is still there.
func (u user) keepForm(random *rand.Rand) (f *keptForm, alive bool) {
	template := [][2]string{{"feedback", "-"}, {"leave-form", "leave"}}[random.IntN(2)]
	a, err := u.Try(u.making(template[0], template[1]))
	if err != nil || a.Status != 200 {
		return nil, err == nil
	}
	f = &keptForm{workflow: template[1], id: a.Body, draft: "null"}
	for range random.IntN(3) {
		data := fmt.Sprintf(`{"n":%d}`, random.Int())
		save := u.Posting("/form-runtime/api/v1/draft/"+f.workflow+"/"+f.id, `{"data":`+data+`}`)
		save.Method = "PUT"
		if a, err = u.Try(save); err != nil || a.Status != 200 {
			f.unsure = true
			return f, err == nil
		}
		f.draft = data
	}
	if random.IntN(2) == 0 {
		return f, true
	}
	if a, err = u.Try(f.submission(u)); err != nil || a.Status != 200 {
		f.unsure = true
		return f, err == nil
	}
	f.draft, f.submitted = "null", a.Body
	return f, true
}

// lost says what of a form is not as it was acknowledged, "" for nothing.
func (f *keptForm) lost(t *testing.T, u user, current, submitted bool) string {
	t.Helper()
	if current == submitted || !f.unsure && submitted != (f.submitted != "") {
		return fmt.Sprintf("%s: current %v, submitted %v, want %+v", f.id, current, submitted, f)
	}
	if f.unsure {
		return ""
	}
	a := u.Get(t, "/form-runtime/api/v1/form/"+f.workflow+"/"+f.id)
	a.WantStatus(t, 200)
	view := wiretest.Decode[struct {
		Draft       *struct{ Data json.RawMessage }
		SubmittedAt int64
	}](t, a.Body)
	draft := "null"
	if view.Draft != nil {
		draft = string(view.Draft.Data)
	}
	if draft != f.draft || (view.SubmittedAt != 0) != submitted {
		return fmt.Sprintf("%s: got %s, want %+v", f.id, a.Body, f)
	}
	if !submitted {
		return ""
	}
	if again := u.Send(t, f.submission(u)); again.Body != f.submitted {
		return fmt.Sprintf("%s: the repetition got %d %s, want %s", f.id, again.Status, again.Body, f.submitted)
	}
	return ""
}

// forms are those that two people make, save and submit while a program runs, until it is killed.
type forms struct {
	desks   [2]user
	kept    [2][]*keptForm
	mu      sync.Mutex // kept
	running sync.WaitGroup
}

// begin has some workers at each desk, with the sessions of the first begin.
func (f *forms) begin(p *program, random *rand.Rand) {
	for i, name := range []string{"ann", "bob"} {
		if f.desks[i].Client == nil {
			f.desks[i] = p.desk(name)
		}
		f.desks[i].Client = p.Client
		for range 2 {
			draw := rand.New(rand.NewPCG(random.Uint64(), 0))
			f.running.Go(func() {
				for alive := true; alive; {
					var kept *keptForm
					if kept, alive = f.desks[i].keepForm(draw); kept != nil {
						f.mu.Lock()
						f.kept[i] = append(f.kept[i], kept)
						f.mu.Unlock()
					}
				}
			})
		}
	}
}

func (f *forms) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.kept[0]) + len(f.kept[1])
}

// check holds sessions, lists and forms against what was acknowledged, of a program that was killed before.
func (f *forms) check(t *testing.T, p *program) (lost []string) {
	f.running.Wait()
	for i := range f.desks {
		f.desks[i].Client = p.Client
		if a := f.desks[i].Get(t, "/session"); a.Status != 200 {
			lost = append(lost, fmt.Sprintf("a session: %d %s", a.Status, a.Body))
			continue
		}
		current, submitted := f.desks[i].listed(t, "forms/mycurrent"), f.desks[i].listed(t, "forms/mysubmitted")
		for _, kept := range f.kept[i] {
			if reason := kept.lost(t, f.desks[i], slices.Contains(current, kept.id), slices.Contains(submitted, kept.id)); reason != "" {
				lost = append(lost, reason)
			}
		}
	}
	return lost
}
