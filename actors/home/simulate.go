package home

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/simulation/script"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// Simulation is what somebody wants to see happen in a world of its own. Nothing of it is kept.
type Simulation struct {
	Caller *identity.Principal
	// Workflow is the one whose newest version is tried. With Text it is that of the text: a definition that need not be published, read
	// under the name File.
	Workflow string
	File     string
	Text     []byte
	As       string // who does a step that does not say so; "": the caller
	Steps    []byte // a list of them, in JSON
}

// Simulator simulates for the users of a service, as many at a time as its queue lets, which is its own.
type Simulator struct {
	Parser  *statemachine.Parser
	Queue   *Queue
	Catalog *catalog.Catalog
	Users   func() *identity.Directory
	Clock   func() time.Time
}

// Simulate answers what script.Simulation.Run returns. The error of a definition or of steps with faults is failure.ErrInvalid and
// wraps document.Faults; failure.ErrNotFound: there is no such workflow.
func (s *Simulator) Simulate(ctx context.Context, r *Simulation) (answer json.RawMessage, err error) {
	err = s.Queue.do(ctx, r.Caller.ID, func(ended func() error) error {
		answer, err = s.simulate(r, ended)
		return err
	})
	var faults document.Faults
	if errors.As(err, &faults) {
		return nil, &failure.Error{Kind: failure.ErrInvalid, Reason: "what is to be simulated is wrong; nothing happened", Cause: faults}
	}
	return answer, err
}

func (s *Simulator) find(workflow string, version uint64) (*statemachine.Definition, error) {
	if version == 0 {
		return s.Catalog.Newest(workflow)
	}
	return s.Catalog.Find(workflow, version)
}

func (s *Simulator) simulate(r *Simulation, ended func() error) (json.RawMessage, error) {
	var own *statemachine.Definition
	users, workflow, as := s.Users(), r.Workflow, r.As
	if r.Text != nil {
		source, _, err := ParseDefinition(r.File, r.Text, s.Parser.Until(ended), users)
		if err != nil {
			return nil, err
		}
		own, workflow = source.Parsed, string(source.Parsed.ID)
	} else if _, err := s.find(workflow, 0); err != nil {
		return nil, failure.In("simulate "+workflow, "", err)
	}
	if as == "" {
		as = string(r.Caller.ID)
	}
	known := script.NewPublished(users, s.find, own)
	steps, err := script.ParseSteps("steps.json", r.Steps, workflow, as, known)
	if err != nil {
		return nil, err
	}
	of := script.Simulation{Known: known, Workflow: workflow, Now: s.Clock(), Steps: steps, Clock: s.Clock, Ended: ended}
	return of.Run()
}
