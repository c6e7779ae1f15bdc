package endtoend

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/wiretest"
)

// portalFiles are the files of a home with forms.
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

// desk returns a user with a session.
func (p *program) desk(name string) user { return p.withCookie(p.home.session(name)) }

// making is a request for a form; "-" is no workflow.
func (u user) making(template, workflow string) request {
	return u.Posting("/form-portal/forms/create", `{"formId":"`+template+`","workflowId":"`+strings.Trim(workflow, "-")+`"}`)
}

// listed returns the ids in one of the user's lists.
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

// TestKillForms ends the program by SIGKILL while forms are made, saved and
// submitted. All that was acknowledged must be there afterwards, in the right list,
// and the sessions must still be good.
func TestKillForms(t *testing.T) {
	kills := 3
	if os.Getenv(killsName) != "" {
		kills = 6
	}
	lost := killForms(t, binary(), kills)
	assert.Empty(t, lost, "what was acknowledged is not what there is:\n%s", strings.Join(lost, "\n"))
}

// TestKillFormsControl is TestKillControl for forms.
func TestKillFormsControl(t *testing.T) {
	const kills = 40
	assert.NotEmpty(t, killForms(t, nosync(t), kills), "the planted bug was not seen in %d kills: the harness is blind", kills)
}

// killForms ends with the first kill after which something is lost.
func killForms(t *testing.T, binary string, kills int) (lost []string) {
	random := rand.New(rand.NewPCG(seed(t), math.MaxUint64))
	p := launch(t, newHome(t, portalFiles()), binary)
	p.ready()
	desks := [2]user{p.desk("ann"), p.desk("bob")}
	var kept [2][]*keptForm
	for round := 0; round < kills && len(lost) == 0; round++ {
		var mu sync.Mutex // kept
		var done sync.WaitGroup
		least := len(kept[0]) + len(kept[1]) + 5
		for worker := range 8 {
			draw := rand.New(rand.NewPCG(uint64(round), uint64(worker)))
			done.Go(func() {
				for alive := true; alive; {
					var f *keptForm
					if f, alive = desks[worker%2].keepForm(draw); f != nil {
						mu.Lock()
						kept[worker%2] = append(kept[worker%2], f)
						mu.Unlock()
					}
				}
			})
		}
		p.await("some forms", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(kept[0])+len(kept[1]) >= least
		})
		pause(logUniform(random, 50*time.Millisecond, 800*time.Millisecond))
		p.quiet = true
		p.kill()
		done.Wait()
		p = launch(t, p.home, binary, variants[random.IntN(len(variants))]...)
		p.ready()
		for i := range desks {
			desks[i].Client = p.Client
			if a := desks[i].Get(t, "/session"); a.Status != 200 {
				lost = append(lost, fmt.Sprintf("a session: %d %s", a.Status, a.Body))
				continue
			}
			current, submitted := desks[i].listed(t, "forms/mycurrent"), desks[i].listed(t, "forms/mysubmitted")
			for _, f := range kept[i] {
				if reason := f.lost(t, desks[i], slices.Contains(current, f.id), slices.Contains(submitted, f.id)); reason != "" {
					lost = append(lost, reason)
				}
			}
		}
	}
	t.Logf("%d and %d forms; lost %d", len(kept[0]), len(kept[1]), len(lost))
	if len(lost) == 0 {
		p.stop()
	}
	return lost
}
