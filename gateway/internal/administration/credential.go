package administration

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/actors/audit"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine/data"
)

func (g *Group) listSessions(x *kernel.Exchange) error {
	list, next, err := g.page(x, identity.Session)
	if err != nil {
		return err
	}
	return x.AnswerJSON(api.SessionList{Sessions: list, Next: next})
}

func (g *Group) listTokens(x *kernel.Exchange) error {
	list, next, err := g.page(x, identity.Token)
	if err != nil {
		return err
	}
	return x.AnswerJSON(api.TokenList{Tokens: list, Next: next})
}

// page is a page of the credentials that the caller may see, oldest first. A cursor is the time and id of the last one.
func (g *Group) page(x *kernel.Exchange, kind identity.Kind) (list []api.Credential, next *string, err error) {
	q := parse.Parameters{Values: x.Query}
	user, limit, cursor := identity.UserID(q.Text("user")), q.Limit(parse.PageDefault), q.Cursor()
	if cursor != "" {
		created, id, ok := strings.Cut(cursor, ".")
		if _, err := strconv.ParseInt(created, 10, 64); err != nil || !ok || id == "" {
			q.Refuse(`the query parameter "cursor" is not valid`)
		}
	}
	if q.Err != nil {
		return nil, nil, q.Err
	}
	all, err := g.Identities.Credentials(x.Request.Context(), kind)
	if err != nil {
		return nil, nil, err
	}
	all = slices.DeleteFunc(all, func(c identity.Credential) bool {
		return user != "" && c.User != user || !maySee(x.Caller, &c)
	})
	from := 0
	if cursor != "" {
		from, _ = slices.BinarySearchFunc(all, cursor, func(c identity.Credential, cursor string) int {
			return compareCursors(cursorOf(&c), cursor)
		})
	}
	list = []api.Credential{}
	for i := range all[from:] {
		c := &all[from+i]
		if len(list) == limit {
			return list, x.LinkNext(cursorOf(c)), nil
		}
		list = append(list, shown(c))
	}
	return list, nil, nil
}

// cursorOf is where a page goes on with a credential.
func cursorOf(c *identity.Credential) string {
	return strconv.FormatInt(c.Created.UnixMilli(), 10) + "." + c.ID
}

func compareCursors(a, b string) int {
	atA, idA, _ := strings.Cut(a, ".")
	atB, idB, _ := strings.Cut(b, ".")
	if d := len(atA) - len(atB); d != 0 { // they are numbers
		return d
	}
	return strings.Compare(atA+idA, atB+idB)
}

// maySee: holders of mod-api-tokens alone have to do with their own credentials only.
func maySee(caller *identity.Principal, c *identity.Credential) bool {
	return caller.Has(identity.Admin) || c.User == caller.ID
}

func shown(c *identity.Credential) api.Credential {
	return api.Credential{
		ID: c.ID, User: string(c.User), Note: c.Note, Created: show.Time(c.Created),
		Expires: show.TimeOrNil(c.Expires), LastUsed: show.TimeOrNil(c.LastUsed), Revoked: show.TimeOrNil(c.Revoked),
	}
}

func (g *Group) revokeSession(x *kernel.Exchange) error { return g.revoke(x, identity.Session) }

func (g *Group) revokeToken(x *kernel.Exchange) error { return g.revoke(x, identity.Token) }

func (g *Group) revoke(x *kernel.Exchange, kind identity.Kind) error {
	id := x.Params.ByName("id")
	if !x.Caller.Has(identity.Admin) {
		all, err := g.Identities.Credentials(x.Request.Context(), kind)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(c identity.Credential) bool { return c.ID == id && maySee(x.Caller, &c) }) {
			return failure.ErrNotFound
		}
	}
	if err := g.Identities.Revoke(asCaller(x), kind, id); err != nil {
		return err
	}
	return x.AnswerJSON(struct{}{})
}

func asCaller(x *kernel.Exchange) context.Context {
	return audit.By(x.Request.Context(), x.Caller.ID)
}

var tokenShape = parse.NewShape("",
	parse.Field{Name: "user", Kind: data.String}, parse.Field{Name: "expires", Kind: data.String}, parse.Field{Name: "note", Kind: data.String},
)

func (g *Group) createToken(x *kernel.Exchange) error {
	wanted, err := parseToken(x)
	if err != nil {
		return err
	}
	if !x.Caller.Has(identity.Admin) && wanted.User != x.Caller.ID {
		return failure.Refuse(failure.ErrForbidden, "permission denied: a token of another user needs mod-admin")
	}
	secret, made, err := g.Identities.Create(asCaller(x), identity.Token, wanted)
	if err != nil {
		return err
	}
	return x.AnswerJSON(api.CreatedToken{Token: secret, Credential: shown(&made)})
}

func parseToken(x *kernel.Exchange) (wanted identity.CreateCredential, err error) {
	body, err := parse.Body(x.Body)
	if err != nil {
		return wanted, err
	}
	var members [3]data.Value
	if err := tokenShape.Read(body, members[:]); err != nil {
		return wanted, err
	}
	wanted.User = x.Caller.ID
	if members[0] != nil {
		wanted.User = identity.UserID(members[0].Text())
	}
	if members[1] != nil {
		if wanted.Ends, err = time.Parse(time.RFC3339, members[1].Text()); err != nil {
			return wanted, parse.Malformed(`"expires" must be a time such as 2026-11-26T09:31:00Z`)
		}
	}
	if members[2] != nil {
		wanted.Note = members[2].Text()
	}
	return wanted, nil
}
