package administration

import (
	"slices"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
)

// listUsers lists them in the order of the file. A cursor is the first user of the page.
func (g *Group) listUsers(x *kernel.Exchange) error {
	q := parse.Parameters{Values: x.Query}
	limit, cursor := q.Limit(parse.PageDefault), q.Cursor()
	directory := g.Identities.Directory()
	users := directory.Users()
	if cursor != "" {
		from := slices.IndexFunc(users, func(u identity.User) bool { return string(u.ID) == cursor })
		if from < 0 {
			q.Refuse(`the query parameter "cursor" is not valid, or the users have changed: begin again`)
		} else {
			users = users[from:]
		}
	}
	if q.Err != nil {
		return q.Err
	}
	answer := api.UserList{Users: []api.User{}}
	for i := range users {
		if len(answer.Users) == limit {
			answer.Next = x.LinkNext(string(users[i].ID))
			break
		}
		answer.Users = append(answer.Users, userOf(directory, &users[i]))
	}
	return x.AnswerJSON(answer)
}

func (g *Group) showUser(x *kernel.Exchange) error {
	directory := g.Identities.Directory()
	for i, u := range directory.Users() {
		if string(u.ID) == x.Params.ByName("userId") {
			return x.AnswerJSON(userOf(directory, &directory.Users()[i]))
		}
	}
	return failure.ErrNotFound
}

func userOf(d *identity.Directory, u *identity.User) api.User {
	out := api.User{ID: string(u.ID), Name: u.Name, Email: u.Email, Disabled: u.Disabled, Roles: []string{}, Privileges: []api.Privilege{}}
	from := map[identity.Privilege][]string{}
	for _, r := range u.Roles {
		out.Roles = append(out.Roles, string(r))
	}
	for _, r := range d.Roles() {
		if slices.Contains(u.Roles, r.ID) {
			for _, p := range r.Privileges {
				from[p] = append(from[p], "role:"+string(r.ID))
			}
		}
	}
	for _, p := range u.Privileges {
		from[p] = append(from[p], "user")
	}
	for _, p := range identity.Privileges() {
		if from[p] != nil {
			out.Privileges = append(out.Privileges, api.Privilege{ID: string(p), From: slices.Compact(from[p])})
		}
	}
	return out
}

func (g *Group) listRoles(x *kernel.Exchange) error {
	directory := g.Identities.Directory()
	answer := api.RoleList{Roles: []api.UserRole{}}
	for _, r := range directory.Roles() {
		out := api.UserRole{ID: string(r.ID), Name: r.Name, Privileges: []string{}, Users: []string{}}
		for _, p := range r.Privileges {
			out.Privileges = append(out.Privileges, string(p))
		}
		for _, u := range directory.Users() {
			if !u.Disabled && slices.Contains(u.Roles, r.ID) {
				out.Users = append(out.Users, string(u.ID))
			}
		}
		answer.Roles = append(answer.Roles, out)
	}
	return x.AnswerJSON(answer)
}

// showPermission answers for the user as identity.yaml has it: roles that an identity provider gives are those of a session.
func (g *Group) showPermission(x *kernel.Exchange) error {
	q := parse.Parameters{Values: x.Query}
	load := message.Load{WorkflowID: q.Text("workflowId"), InstanceID: q.Text("instanceId")}
	event := q.Text("event")
	for _, name := range []string{"workflowId", "instanceId", "event"} {
		if !x.Query.Has(name) {
			q.Refuse("the query parameter %q is missing", name)
		}
	}
	if q.Err != nil {
		return q.Err
	}
	if !statemachine.IsIdentifier(load.WorkflowID) || !statemachine.IsIdentifier(load.InstanceID) {
		return failure.ErrNotFound
	}
	user, directory := identity.UserID(x.Params.ByName("userId")), g.Identities.Directory()
	if load.Caller = directory.Principal(user); load.Caller == nil {
		if directory.Name(user) == "" {
			return failure.Refuse(failure.ErrNotFound, "there is no user %s", parse.Quote(string(user)))
		}
		return x.AnswerJSON(api.Permission{Why: []string{"the user is disabled"}})
	}
	p, err := g.Workflows.Permission(&load, event)
	if err != nil {
		return err
	}
	return x.AnswerJSON(api.Permission(p))
}
