package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"troupe/actors/identity"
	"troupe/statemachine"
)

// claims are the provider's claims about a person.
type claims map[string]any

// find returns a claim. A name with dots that is no claim itself leads into
// objects: "realm_access.roles".
func (c claims) find(name string) (any, bool) {
	if value, ok := c[name]; ok {
		return value, true
	}
	first, rest, ok := strings.Cut(name, ".")
	if !ok {
		return nil, false
	}
	inner, ok := c[first].(map[string]any)
	if !ok {
		return nil, false
	}
	return claims(inner).find(rest)
}

// user returns the login name. Of name@domain only the name counts, and only when
// the domain is the given one: john.doe of another domain is another person. Errors
// never contain the value.
func (c claims) user(name, domain string) (identity.UserID, error) {
	value, ok := c.find(name)
	if !ok {
		return "", fmt.Errorf("there is no claim %q", name)
	}
	text, _ := value.(string)
	if name == "email" {
		// Anybody can enter an address; a provider that has checked it says so.
		if verified, _ := c["email_verified"].(bool); !verified {
			return "", errors.New("the e-mail address is not verified")
		}
	}
	if domain != "" {
		local, found, ok := strings.Cut(text, "@")
		if !ok || !strings.EqualFold(found, domain) {
			return "", fmt.Errorf("the claim %q is not a name of the domain %q", name, domain)
		}
		text = local
	}
	if !statemachine.IsIdentifier(text) {
		return "", fmt.Errorf("the claim %q is not a login name", name)
	}
	return identity.UserID(text), nil
}

// roles returns the roles that the values of a claim stand for, each once. Values
// that are not text or are not mapped give none.
func (c claims) roles(name string, of map[string][]identity.RoleID) []identity.RoleID {
	value, _ := c.find(name)
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var roles []identity.RoleID
	for _, item := range list {
		if text, ok := item.(string); ok {
			roles = append(roles, of[text]...)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}
