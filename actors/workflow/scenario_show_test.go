package workflow_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pending"
)

// show is an instance as it is stored.
func (s *scenario) show(id string) string {
	for _, i := range s.Instances(s.of[id]) {
		if i.Name != id {
			continue
		}
		var entries []struct {
			Event, User      string
			TransitionEvent  string
			StartState       []string
			EndState, Before []string
		}
		s.Must(json.Unmarshal(i.Document.History(), &entries))
		var steps []string
		for n, e := range entries {
			if n > 0 {
				require.Equal(s.t, entries[n-1].EndState, e.StartState, "entry %d begins elsewhere", n+1)
			}
			steps = append(steps, strings.TrimSpace(e.TransitionEvent+" "+e.User))
		}
		require.Len(s.t, entries, int(i.Record.Sequence))
		return fmt.Sprintf("%s: %s %s; %s\n", id, strings.Join(entries[len(entries)-1].EndState, " "), i.Record.Public, strings.Join(steps, ", "))
	}
	return id + " is not there\n"
}

// at is a time of virtual time, as it has passed.
func (s *scenario) at(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Sub(s.begun).String()
}

func (s *scenario) waits(p *message.Pending) string {
	var out strings.Builder
	for _, c := range p.Children {
		fmt.Fprintf(&out, "child %s of %s %s\n", c.InstanceID, c.WorkflowID, c.Status)
	}
	for _, t := range p.Timers {
		fmt.Fprintf(&out, "timer %s %s of %s at %s, failed %t\n", t.ID, t.Event, t.At.Node, s.at(t.Due), t.Failed)
	}
	for _, d := range p.Deliveries {
		fmt.Fprintln(&out, deliveryText(d))
	}
	fmt.Fprintf(&out, "done %t, ended %t\n", p.IsDone, p.IsEnded)
	return out.String()
}

// deliveries are those of a state that a user sees; nobody sees what nobody may read.
func (s *scenario) deliveries(who *identity.Principal, state outbox.State) (out []pending.Delivery) {
	for cursor := ""; ; {
		page, err := s.Waiting.Deliveries(s.t.Context(), &pending.DeliveryList{Caller: who, State: state, Cursor: cursor, Limit: 2})
		s.Must(err)
		out = append(out, page.Deliveries...)
		if cursor = page.Next; cursor == "" {
			return out
		}
	}
}

func deliveryText(d pending.Delivery) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s, attempts %d, status %d %s", d.ID, d.Kind, d.Name, d.State, d.Body, d.Attempts, d.LastStatus, d.LastError))
}

func (s *scenario) schedules() (string, error) {
	all, err := s.Schedules(s.t.Context())
	var out strings.Builder
	for _, x := range all {
		fmt.Fprintf(&out, "%s %s: last %s, next %s, zone %s, paused %t %s\n", x.Workflow, x.Name, s.at(x.Last), s.at(x.Next), x.Zone, x.Paused, x.LastError)
	}
	return out.String(), err
}

// failed are the incidents that a user sees; those that are new get a name. In short: what happens of itself has no exact times.
func (s *scenario) failed(who *identity.Principal, short bool) (string, error) {
	var lines [][2]string // the id, and what is said of it
	for cursor := ""; ; {
		page, err := s.Waiting.Incidents(s.t.Context(), &pending.IncidentList{Caller: who, Cursor: cursor, Limit: 2})
		if err != nil {
			return "", err
		}
		for _, i := range page.Incidents {
			r := i.Row
			text := fmt.Sprintf("%q %s of %s", r.Kind, i.Event, cmp.Or(i.InstanceID, i.Workflow))
			if !short {
				text += fmt.Sprintf(", version %d, %s:%d %q, read %v, for %q, %d from %s to %s", i.Version, i.File, i.Line, i.Expression, r.Read, r.User, r.Count, s.at(r.First), s.at(r.Last))
			}
			lines = append(lines, [2]string{i.ID, s.named(text + ": " + i.Error + "\n")})
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	slices.SortFunc(lines, func(a, b [2]string) int { return strings.Compare(a[1], b[1]) })
	out := ""
	for _, l := range lines {
		s.full[s.named(s.failure(l[0]))], s.full["last"] = l[0], l[0]
		out += l[0] + ": " + l[1]
	}
	return cmp.Or(out, "none\n"), nil
}

// failure has a name for an incident, or for the reference to one, before anything else is shown of it.
func (s *scenario) failure(id string) string {
	if of, _, _ := strings.Cut(id, "-"); s.named(of) == anID {
		s.failures++
		s.name(of, fmt.Sprint("incident", s.failures))
	}
	return id
}

// anID stands for one that has no name.
const anID = "<id>"

var (
	ids      = regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`)
	failures = regexp.MustCompile(`\b(incident[0-9]+)-[0-9]+-[0-9]+\b`)
	parts    = regexp.MustCompile(`\b[a-z][a-zA-Z0-9]*-[0-9]+-[0-9]+\b`)
)

// named is a text with names in the place of ids.
func (s *scenario) named(text string) string {
	text = ids.ReplaceAllString(strings.NewReplacer(s.names...).Replace(text), anID)
	return failures.ReplaceAllString(text, "$1")
}
