// Package administration has the routes about who may do something and who did: users, roles, sessions, tokens and the
// audit log.
package administration

import (
	"context"

	"troupe/actors/audit"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/gateway/internal/kernel"
)

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	Identities Identities
	Workflows  Workflows
	Audit      *audit.Log
}

// Workflows decides who may do what with instances.
type Workflows interface {
	// Permission finds out whether the caller may send an event to an instance now, and why.
	Permission(req *message.Load, event string) (message.Permission, error)
}

// Identities are users, tokens and sessions. Errors are those of package failure.
type Identities interface {
	// Directory has the users and roles of now.
	Directory() *identity.Directory
	// Create returns the secret text of a new credential once it is durable.
	Create(ctx context.Context, kind identity.Kind, c identity.CreateCredential) (string, identity.Credential, error)
	// Credentials lists those of a kind, oldest first.
	Credentials(ctx context.Context, kind identity.Kind) ([]identity.Credential, error)
	// Revoke ends one for good.
	Revoke(ctx context.Context, kind identity.Kind, id string) error
}

// Routes are for holders of mod-admin, and some for those of mod-api-tokens.
func (g *Group) Routes() []kernel.Route {
	base := kernel.Route{Access: kernel.SignedIn(identity.Token | identity.Session), Path: kernel.AdminPath, Privilege: identity.Admin, Operator: true}
	tokens := base
	tokens.Privilege, tokens.OrPrivilege = identity.APITokens, identity.Admin
	create := tokens
	create.Secret = true
	return []kernel.Route{
		base.Row("users", "GET", "/users", g.listUsers, "limit", "cursor"),
		base.Row("user", "GET", "/users/:userId", g.showUser),
		base.Row("can", "GET", "/users/:userId/can", g.showPermission, "workflowId", "instanceId", "event"),
		base.Row("roles", "GET", "/roles", g.listRoles),
		base.Row("sessions", "GET", "/sessions", g.listSessions, "user", "limit", "cursor"),
		base.Row("revoke-session", "DELETE", "/sessions/:id", g.revokeSession),
		tokens.Row("tokens", "GET", "/tokens", g.listTokens, "user", "limit", "cursor"),
		create.Row("create-token", "POST", "/tokens", g.createToken),
		tokens.Row("revoke-token", "DELETE", "/tokens/:id", g.revokeToken),
		base.Row("audit", "GET", "/audit", g.listAudit, "since", "actor", "action", "order", "limit", "after"),
		base.Row("verify-audit", "GET", "/audit/verify", g.verifyAudit),
	}
}
