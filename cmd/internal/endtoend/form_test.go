package endtoend

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func draftLife(t *testing.T, s *scene) {
	ann, bob := s.desk("ann"), s.desk("bob")
	id := ann.makeForm(t, "leave-form", "leave")
	wantFault(t, ann.save(t, "leave", id, `{"days":1}`, "If-Match: *"), 412, "Precondition failed")
	revisionOf := func(a answer) string {
		t.Helper()
		wantStatus(t, a, 200)
		m := objectOf(t, a.body, "revision", "savedAt")
		if at := decode[int64](t, m["savedAt"]); at < time.Now().Add(-time.Minute).UnixMilli() || at > time.Now().UnixMilli() {
			t.Errorf("savedAt: got %d", at)
		}
		if got := a.header.Get("ETag"); got != `"`+string(m["revision"])+`"` {
			t.Errorf("ETag: got %s, want the revision %s", got, m["revision"])
		}
		return a.header.Get("ETag")
	}
	first := revisionOf(ann.save(t, "leave", id, `{"days":"what does not fit yet"}`))
	second := revisionOf(ann.save(t, "leave", id, `{"days":2}`, "If-Match: "+first))
	wantFault(t, ann.save(t, "leave", id, `{"days":3}`, "If-Match: "+first), 412, "Precondition failed")
	wantFault(t, ann.save(t, "leave", id, `{"days":3}`, "If-Match: W/"+second), 412, "Precondition failed")
	wantFault(t, ann.save(t, "leave", id, `{"days":3}`, "If-Match: garbage"), 400, "Bad request")
	revisionOf(bob.save(t, "leave", id, `{"days":40}`))
	if v := ann.view(t, "leave", id); v.draft != `{"days":2}` || `"`+string(v.revision)+`"` != second || strings.Contains(v.data, "days") {
		t.Errorf("ann sees %+v", v)
	}
	if v := bob.view(t, "leave", id); v.draft != `{"days":40}` {
		t.Errorf("bob sees %+v", v)
	}
	if r := s.ann.load(t, "leave", id).record(t); len(r.History) != 1 {
		t.Errorf("drafts are in the history: %s", r.text)
	}
	wantFault(t, ann.drop(t, "leave", id, "If-Match: "+first), 412, "Precondition failed")
	if a := ann.drop(t, "leave", id, "If-Match: "+second); a.status != 200 || a.body != `{}` {
		t.Errorf("dropped: got %d %s", a.status, a.body)
	}
	revisionOf(ann.save(t, "leave", id, `{"days":5}`))
	ann.submit(t, "leave", id, `{"days":5}`).record(t)
	if v := ann.view(t, "leave", id); v.draft != "null" {
		t.Errorf("the draft is there after the submission: %+v", v)
	}
	wantFault(t, ann.save(t, "leave", id, `{}`), 409, "Conflict")
	wantStatus(t, bob.drop(t, "leave", id), 200)
}

func othersForms(t *testing.T, s *scene) {
	plain, check := s.desk("ann").makeForm(t, "feedback", ""), s.desk("bob").makeForm(t, "safety", "")
	bound := s.desk("ann").makeForm(t, "leave-form", "leave")
	missing := s.desk("kim").get(t, runtimeRoot+"/form/-/"+nowhere)
	wantFault(t, missing, 404, "Not found")
	for _, c := range []struct{ who, workflow, id string }{
		{"bob", "-", plain},
		{"adm", "-", plain},
		{"kim", "-", plain},
		{"ann", "-", check},
		{"adm", "leave", bound},
		{"kim", "leave", bound},
		{"ann", "leave", plain},
		{"ann", "-", bound},
		{"ann", "nothing", bound},
		{"ann", "payroll", bound},
	} {
		u := s.desk(c.who)
		wantSameAnswer(t, u.get(t, runtimeRoot+"/form/"+c.workflow+"/"+c.id), missing)
		wantSameAnswer(t, u.save(t, c.workflow, c.id, `{}`), missing)
		wantSameAnswer(t, u.drop(t, c.workflow, c.id), missing)
		wantSameAnswer(t, u.submit(t, c.workflow, c.id, `{"days":1}`), missing)
		if got := u.where(t, c.id); c.who != "ann" && got != "" {
			t.Errorf("%s: %s is in %q", c.who, c.id, got)
		}
	}
	// Group B has no name for what is bound to no workflow.
	for _, path := range []string{"/instance/-/" + plain, "/instances/-", "/instance/-/" + plain + "/events", "/watch/-/" + plain, "/instance/plain/" + plain} {
		wantFault(t, s.ann.get(t, root+path), 404, "NotFound")
	}
	wantFault(t, s.ann.event(t, "-", plain, "submit", ""), 404, "NotFound")
	wantFault(t, s.ann.create(t, "-", ""), 404, "NotFound")
	if a := s.ann.get(t, root+"/choices"); strings.Contains(a.body, `"-"`) {
		t.Errorf("choices show it: %s", a.body)
	}
}

func submissions(t *testing.T, s *scene) {
	bob := s.desk("bob")
	for _, c := range []struct{ template, workflow, good, bad, place string }{
		{"feedback", "", `{"text":"x"}`, `{"text":1}`, "text"},
		{"safety", "", `{"exits":true}`, `{"exits":false}`, "exits"},
		{"leave-form", "leave", `{"days":1}`, `{"days":61}`, "days"},
	} {
		id, workflow := bob.makeForm(t, c.template, c.workflow), cmp.Or(c.workflow, "-")
		a := bob.submit(t, workflow, id, c.bad)
		if reason := faultReason(a, 400, "Bad request"); reason != "" || !strings.Contains(a.body, c.place) {
			t.Errorf("%s: got %s, want 400 with the place; %s", c.template, a.body, reason)
		}
		first := bob.submit(t, workflow, id, c.good, "Idempotency-Key: "+id)
		if r := first.record(t); r.ID != id || r.WorkflowID != workflow || len(r.History) != 2 || first.header.Get("ETag") != `"2"` {
			t.Errorf("%s: got %s and the ETag %s", c.template, r.text, first.header.Get("ETag"))
		}
		for _, again := range bob.atOnce(t, 5, bob.sending("POST", runtimeRoot+"/submit", submitBody(workflow, id, c.good), "Idempotency-Key: "+id)) {
			wantSameAnswer(t, again, first)
		}
		wantFault(t, bob.submit(t, workflow, id, c.good), 409, "Conflict")
		wantFault(t, bob.submit(t, workflow, id, c.bad, "Idempotency-Key: "+id), 422, "Unprocessable")
	}
	path, body := makeBody("leave-form", "leave")
	ids := map[string]bool{}
	for _, a := range bob.atOnce(t, 10, bob.sending("POST", path, body, "Idempotency-Key: once")) {
		wantStatus(t, a, 200)
		ids[a.body] = true
	}
	if len(ids) != 1 {
		t.Errorf("one key made %d forms", len(ids))
	}
}

// agreesWithGroupB holds that Form.by and Form.when are the first history entry.
func agreesWithGroupB(t *testing.T, s *scene) {
	ann := s.desk("ann")
	for range 5 {
		id := ann.makeForm(t, "leave-form", "leave")
		ann.submit(t, "leave", id, `{"days":1}`).record(t)
		v, r := ann.view(t, "leave", id), s.ann.load(t, "leave", id).record(t)
		at := func(e entry) int64 {
			ts, err := time.Parse(time.RFC3339, e.TS)
			if err != nil {
				t.Fatal(err)
			}
			return ts.UnixMilli()
		}
		if v.form.By != r.History[0].User || v.form.When != at(r.History[0]) || v.submittedAt != at(r.History[1]) {
			t.Errorf("the form says %+v, submitted at %d; the history %+v", v.form, v.submittedAt, r.History)
		}
		if !slices.Equal(v.states, r.States) || v.data != r.Public || v.form.Status != strings.Join(nodes(r.States), ", ") {
			t.Errorf("the form shows %+v, the instance is %s", v, r.text)
		}
	}
}

// archivedInTime runs a program with a short retention.
func archivedInTime(t *testing.T, _ *scene) {
	files := portalFiles()
	files["troupe.yaml"] = "archiveAfter: 1s\n"
	p := start(t, newHome(t, files))
	bob := p.desk("bob")
	made := map[string]string{}
	for _, c := range [][3]string{{"feedback", "", `{}`}, {"safety", "", `{"exits":true}`}, {"leave-form", "leave", `{"days":1}`}} {
		id := bob.makeForm(t, c[0], c[1])
		bob.submit(t, cmp.Or(c[1], "-"), id, c[2]).record(t)
		made[c[0]] = id
	}
	open := bob.makeForm(t, "feedback", "")
	for template, want := range map[string]string{"feedback": "forms/myarchived", "safety": "checklists/myarchived"} {
		p.await("the archive", 10*time.Second, func() bool { return bob.where(t, made[template]) == want })
		if v := bob.view(t, "-", made[template]); v.category != "archived" || v.editable || time.Now().UnixMilli()-v.submittedAt < 1000 {
			t.Errorf("%s: got %+v at %d", template, v, time.Now().UnixMilli())
		}
	}
	// What is on its way, or not submitted, stays where it is.
	if got := bob.where(t, made["leave-form"]); got != "forms/mysubmitted" {
		t.Errorf("on its way: got it in %q", got)
	}
	if got := bob.where(t, open); got != "forms/mycurrent" {
		t.Errorf("not submitted: got it in %q", got)
	}
	p.as(p.home.token("bob")).event(t, "leave", made["leave-form"], "approve", "").record(t)
	p.await("the archive", 10*time.Second, func() bool { return bob.where(t, made["leave-form"]) == "forms/myarchived" })
	p.home.write("troupe.yaml", "archiveAfter: 0s\n")
	bob.program = p.restart()
	if got := bob.where(t, made["leave-form"]); got != "forms/myarchived" {
		t.Errorf("after a restart: got it in %q", got)
	}
	bob.submit(t, "-", open, `{}`).record(t)
	bob.await("the archive without any retention", 10*time.Second, func() bool { return bob.where(t, open) == "forms/myarchived" })
	bob.stop()
}

// lastModifiedFollows changes a template's file under the running program.
func lastModifiedFollows(t *testing.T, _ *scene) {
	h := newHome(t, portalFiles())
	p := start(t, h)
	ann := p.desk("ann")
	shown := func() (name string, at int64) {
		for _, text := range arrayOf(t, ann.get(t, "/form-portal/forms/role/employee")) {
			m := objectOf(t, string(text), "formId", "name", "description", "lastModified")
			if decode[string](t, m["formId"]) == "feedback" {
				return decode[string](t, m["name"]), decode[int64](t, m["lastModified"])
			}
		}
		return "", 0
	}
	id := ann.makeForm(t, "feedback", "")
	h.write("forms/feedback.yaml", strings.Replace(feedbackTemplate, "name: Feedback", "name: Your opinion", 1))
	at := time.Date(2031, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	if err := os.Chtimes(filepath.Join(h.dir, "forms/feedback.yaml"), at, at); err != nil {
		t.Fatal(err)
	}
	p.await("the changed template", reloadMax, func() bool {
		name, modified := shown()
		return name == "Your opinion" && modified == at.UnixMilli()
	})
	if v := ann.view(t, "-", id); v.form.Name != "Feedback" || !strings.Contains(v.template, "Your opinion") {
		t.Errorf("a form of before: %+v", v)
	}
	h.remove("forms/feedback.yaml")
	p.await("the template to go", reloadMax, func() bool { name, _ := shown(); return name == "" })
	wantFault(t, ann.tryForm(t, "feedback", ""), 404, "Not found")
	if v := ann.view(t, "-", id); v.template != "null" || v.editable {
		t.Errorf("a form without its template: %+v", v)
	}
	p.stop()
}

// templateChanges holds what a change means for forms that exist.
func templateChanges(t *testing.T, _ *scene) {
	h := newHome(t, portalFiles())
	p := start(t, h)
	ann := p.desk("ann")
	old, other := ann.makeForm(t, "feedback", ""), ann.makeForm(t, "feedback", "")
	first := ann.submit(t, "-", old, `{"text":"x"}`, "Idempotency-Key: first")
	wantStatus(t, first, 200)
	h.write("forms/feedback.yaml", strings.Replace(feedbackTemplate, "type: string", "type: integer", 1))
	p.await("the changed schema", reloadMax, func() bool { return strings.Contains(ann.view(t, "-", other).template, "integer") })
	wantFault(t, ann.submit(t, "-", other, `{"text":"x"}`), 400, "Bad request")
	wantSameAnswer(t, ann.submit(t, "-", old, `{"text":"x"}`, "Idempotency-Key: first"), first)
	h.write("forms/feedback.yaml", strings.Replace(feedbackTemplate, "id: feedback,", "id: feedback, enabled: false,", 1))
	p.await("the template to be switched off", reloadMax, func() bool { return ann.tryForm(t, "feedback", "").status == 404 })
	wantStatus(t, ann.submit(t, "-", other, `{"text":"x"}`), 200)
	p.stop()
}

// formPromise is something about a form that was acknowledged.
type formPromise struct {
	template, workflow, id string
	draft                  string // the draft's data; "" after the submission
	submitted              string // the answer of the submission
}

// TestKillForms ends the program by SIGKILL while forms are made, saved and
// submitted. All that was acknowledged must be in the lists afterwards, in the
// right one, and the sessions must still be good.
func TestKillForms(t *testing.T) {
	kills := 6
	if testing.Short() {
		kills = 2
	}
	k := formKilling{binary: binary(), kills: kills}
	k.run(t)
	t.Logf("%d kills, %d acknowledged, %d forms", kills, k.acks, k.forms)
	if len(k.found) > 0 {
		t.Errorf("what was acknowledged is not what there is:\n%s", strings.Join(k.found, "\n"))
	}
}

// TestKillFormsControl is TestKillControl for forms.
func TestKillFormsControl(t *testing.T) {
	binary, err := built.nosync()
	if err != nil {
		t.Fatal(err)
	}
	k := formKilling{binary: binary, kills: 40, untilLoss: true}
	k.run(t)
	t.Logf("with the bug switched on, after %d acknowledgements: lost %d", k.acks, len(k.found))
	if len(k.found) == 0 {
		t.Errorf("the planted bug was not seen in %d kills: the harness is blind", k.kills)
	}
}

// formKilling is a run of TestKillForms, and what came out.
type formKilling struct {
	binary    string
	kills     int
	untilLoss bool

	acks, forms int
	found       []string
}

// formsEachKill is how many forms are made before each kill at least: without them
// there would be no load to kill under.
const formsEachKill = 5

func (k *formKilling) run(t *testing.T) {
	random := rand.New(rand.NewPCG(seed(t), math.MaxUint64))
	p := launch(t, newHome(t, portalFiles()), k.binary)
	p.ready()
	names := []string{"ann", "bob"}
	desks := map[string]user{}
	promises := map[string]map[string]*formPromise{}
	for _, name := range names {
		desks[name], promises[name] = p.desk(name), map[string]*formPromise{}
	}
	for round := 0; round < k.kills && !(k.untilLoss && len(k.found) > 0); round++ {
		var mu sync.Mutex // promises and acks
		var done sync.WaitGroup
		least := len(promises["ann"]) + len(promises["bob"]) + formsEachKill
		for worker := range 8 {
			name := names[worker%2]
			u, draw := desks[name], rand.New(rand.NewPCG(uint64(round), uint64(worker)))
			done.Go(func() {
				for u.workForms(draw, func(note func(map[string]*formPromise)) {
					mu.Lock()
					defer mu.Unlock()
					k.acks++
					note(promises[name])
				}) {
				}
			})
		}
		p.await("some forms", 30*time.Second, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(promises["ann"])+len(promises["bob"]) >= least
		})
		pause(logUniform(random, 50*time.Millisecond, 800*time.Millisecond))
		p.quiet = true
		p.kill()
		done.Wait()
		p = launch(t, p.home, k.binary, variants[random.IntN(len(variants))]...)
		p.ready()
		for _, name := range names {
			u := desks[name]
			u.program = p
			desks[name] = u
			wantStatus(t, u.get(t, "/session"), 200)
			k.check(t, u, promises[name])
		}
	}
	k.forms = len(promises["ann"]) + len(promises["bob"])
	if !k.untilLoss {
		p.stop()
	}
}

// workForms makes a form, saves it twice and perhaps submits it. What is
// acknowledged it notes. It is false when the program is gone.
func (u user) workForms(random *rand.Rand, acknowledged func(note func(map[string]*formPromise))) bool {
	kind := [][3]string{{"feedback", "", `{"text":"x"}`}, {"leave-form", "leave", `{"days":1}`}}[random.IntN(2)]
	path, body := makeBody(kind[0], kind[1])
	a, err := u.try(u.sending("POST", path, body))
	if err != nil || a.status != 200 {
		return err == nil
	}
	one := &formPromise{template: kind[0], workflow: cmp.Or(kind[1], "-"), id: a.body}
	acknowledged(func(all map[string]*formPromise) { all[one.id] = one })
	for range random.IntN(3) {
		data := fmt.Sprintf(`{"n":%d}`, random.Int())
		a, err := u.try(u.sending("PUT", runtimeRoot+"/draft/"+one.workflow+"/"+one.id, `{"data":`+data+`}`))
		if err != nil || a.status != 200 {
			// It may have been kept: what the draft is now nobody knows.
			acknowledged(func(map[string]*formPromise) { one.draft = "?" })
			return err == nil
		}
		acknowledged(func(map[string]*formPromise) { one.draft = data })
	}
	if random.IntN(2) == 0 {
		return true
	}
	a, err = u.try(u.sending("POST", runtimeRoot+"/submit", submitBody(one.workflow, one.id, kind[2]), "Idempotency-Key: "+one.id))
	if err != nil || a.status != 200 {
		acknowledged(func(map[string]*formPromise) { one.submitted = "?" })
		return err == nil
	}
	acknowledged(func(map[string]*formPromise) { one.submitted, one.draft = a.body, "" })
	return true
}

// check holds what there is against what was acknowledged. What was unknown is
// known afterwards.
func (k *formKilling) check(t *testing.T, u user, promises map[string]*formPromise) {
	t.Helper()
	wrong := func(format string, args ...any) { k.found = append(k.found, fmt.Sprintf(format, args...)) }
	current, submitted := map[string]bool{}, map[string]bool{}
	for list, into := range map[string]map[string]bool{"forms/mycurrent": current, "forms/mysubmitted": submitted} {
		for _, item := range u.forms(t, list) {
			if into[item.ID] {
				wrong("%s shows %s twice", list, item.ID)
			}
			into[item.ID] = true
		}
	}
	for id, one := range promises {
		if one.submitted == "?" {
			if one.submitted = ""; submitted[id] {
				one.submitted, one.draft = "?done", ""
			}
		}
		if want := one.submitted != ""; submitted[id] != want || current[id] == want {
			wrong("%s: current %v, submitted %v, want submitted %v", id, current[id], submitted[id], want)
		}
	}
	ids := slices.Sorted(maps.Keys(promises))
	for _, id := range ids[max(0, len(ids)-40):] {
		one := promises[id]
		if !current[id] && !submitted[id] {
			continue // lost, as was said already
		}
		v := u.view(t, one.workflow, id)
		want := cmp.Or(one.draft, "null")
		if one.draft == "?" {
			one.draft, want = strings.TrimPrefix(v.draft, "null"), v.draft
		}
		if v.draft != want {
			wrong("%s: the draft is %s, want %s", id, v.draft, want)
		}
		if one.submitted != "" && one.submitted != "?done" {
			data := map[string]string{"feedback": `{"text":"x"}`, "leave-form": `{"days":1}`}[one.template]
			if a := u.submit(t, one.workflow, id, data, "Idempotency-Key: "+id); a.status != 200 || a.body != one.submitted {
				wrong("%s: the repetition got %d %s, want %s", id, a.status, clip(a.body), clip(one.submitted))
			}
		}
		if (v.submittedAt != 0) != (one.submitted != "") {
			wrong("%s: %+v", id, v)
		}
	}
}
