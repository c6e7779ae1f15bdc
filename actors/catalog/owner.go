package catalog

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// It keeps those that are gone, so that nobody takes over an id that was in use.
const ownersSetting = "workflow-owners"

func (o ownership) effective() *statemachine.Owners {
	if o.Owners == nil && o.By != "" {
		return &statemachine.Owners{Users: []string{o.By}}
	}
	return o.Owners
}

func (c *Catalog) loadOwners() (map[string]ownership, error) {
	owners := map[string]ownership{}
	err := c.loadSetting(ownersSetting, &owners)
	return owners, err
}

// A version that is there decides, and what is kept only where it is gone or cannot be read.
func (c *Catalog) ownersOf(all map[string]ownership, workflow string, now *currentVersion) (of ownership, known bool) {
	of, known = all[workflow]
	if now == nil {
		return of, known
	}
	if d, err := c.rules(workflow, now); err == nil {
		of.Owners = d.Owners
	}
	return of, true
}

func mayPublish(workflow string, of ownership, by *identity.Principal) error {
	return mayAsOwner(workflow, "publish a version of it", of, by)
}

// MayAssign is the refusal of a user who may not migrate the workflow's instances by a plan that writes their data: create and the
// rules of the workflow do not bind it, so it is for those who decide about these.
func (c *Catalog) MayAssign(workflow string, by *identity.Principal) error {
	of, _ := c.ownersOf(*c.owners.Load(), workflow, c.currentOf(workflow))
	return mayAsOwner(workflow, "migrate its instances with assign", of, by)
}

func mayAsOwner(workflow, what string, of ownership, by *identity.Principal) error {
	owners := of.effective()
	if by.Has(identity.Admin) || owners.Has(CallerOf(by)) {
		return nil
	}
	if owners == nil {
		return failure.Refuse(failure.ErrForbidden, "workflow %s has no owners: only holders of %s may %s", workflow, identity.Admin, what)
	}
	var who []string
	for _, list := range []struct {
		what  string
		names []string
	}{{"user", owners.Users}, {"role", owners.Roles}, {"privilege", owners.Privileges}} {
		if len(list.names) > 0 {
			who = append(who, list.what+" "+strings.Join(list.names, ", "))
		}
	}
	return failure.Refuse(failure.ErrForbidden, "only the owners of workflow %s (%s) and holders of %s may %s", workflow, strings.Join(who, "; "), identity.Admin, what)
}

func (p *publication) remember(all map[string]ownership, workflow string, d *statemachine.Definition, by string) {
	before, known := all[workflow]
	next := ownership{By: by, Owners: before.Owners}
	if d != nil { // NB: else the newest version cannot be read
		next.Owners = d.Owners
	}
	if known && before.By == next.By && before.Owners.Equal(next.Owners) {
		return
	}
	if p.owners == nil {
		p.owners = maps.Clone(all)
	}
	p.owners[workflow] = next
}

// noteRights notes which blocks about rights a source changes. now is the newest version; nil: there is none.
func (c *Catalog) noteRights(p *publication, s *Source, now *currentVersion) error {
	if now == nil {
		return nil
	}
	before, err := c.loadStored(versionKey{s.key().workflow, now.version})
	if errors.Is(err, persistence.ErrNotFound) || errors.Is(err, persistence.ErrCorrupt) {
		return nil
	}
	if err != nil {
		return err
	}
	if blocks := changedBlocks(before, s.stored("")); len(blocks) > 0 {
		p.changes = append(p.changes, rightsChange{s.key(), now.version, blocks})
	}
	return nil
}

func changedBlocks(before, after stored) (blocks []string) {
	old, oldErr := document.Parse(before.File, []byte(before.Text))
	next, nextErr := document.Parse(after.File, []byte(after.Text))
	if oldErr != nil || nextErr != nil {
		return nil // NB: what was published could be read
	}
	for _, key := range []string{"owners", "allow", "create"} {
		a, aErr := old.Field(key).Data()
		b, bErr := next.Field(key).Data()
		refers := strings.Contains(string(b), `"$ref"`) && !maps.Equal(before.Refs, after.Refs)
		if aErr != nil || bErr != nil || string(a) != string(b) || refers {
			blocks = append(blocks, key)
		}
	}
	return blocks
}

func (c *Catalog) logRights(p *publication, by identity.UserID) {
	for _, change := range p.changes {
		c.log.Info().Str("workflow", change.key.workflow).Uint64("version", change.key.version).Uint64("before", change.before).
			Str("user", cmp.Or(string(by), "home")).Strs("blocks", slices.Clone(change.blocks)).Msg("a version changes the rights of its workflow")
	}
}
