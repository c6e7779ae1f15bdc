package retention

import (
	"errors"
	"fmt"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/statemachine/document"
)

// countMax is how many instances Warn counts of a workflow.
const countMax = 10_000

// Warn returns what definitions would delete at once, if they were in use: a retention that is new or shorter than before,
// which is what the newest versions in use have, is for instances of all versions. The store has all shards.
func Warn(store *persistence.Store, before []catalog.Retention, set []catalog.Source, now time.Time) (warnings document.Faults, err error) {
	kept, newest := map[string]time.Duration{}, map[string]*catalog.Source{}
	for _, r := range before {
		kept[r.Workflow] = r.Done
	}
	for n := range set {
		s, id := &set[n], string(set[n].Parsed.ID)
		if of := newest[id]; of == nil || of.Parsed.Version < s.Parsed.Version {
			newest[id] = s
		}
	}
	for id, s := range newest {
		r := catalog.Retention{Workflow: id, Done: s.Parsed.Retention}
		if had, has := kept[id]; r.Done == 0 || has && had <= r.Done {
			continue
		}
		n, err := count(store, r, now)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			continue
		}
		atLeast := ""
		if n == countMax {
			atLeast = "at least "
		}
		warnings = append(warnings, document.Fault{
			File: s.File, Line: s.Line("retention"),
			Reason: fmt.Sprintf("this retention is for instances of all versions: %s%d that are done would be deleted at once", atLeast, n),
		})
	}
	warnings.Sort()
	return warnings, nil
}

func count(store *persistence.Store, r catalog.Retention, now time.Time) (n int, err error) {
	for _, sh := range store.Numbered() {
		err := store.ScanRanges(func(_, _ []byte) error {
			if n++; n == countMax {
				return errEnough
			}
			return nil
		}, due(sh, r, now))
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return n, failure.OfStore(err)
		}
	}
	return n, nil
}
