package chart

import (
	"strings"

	"troupe/statemachine/expr"
)

// Why is Admits, with a reason for those who run the service.
func (r *Rule) Why(c *Caller, s *expr.Scope) (admits bool, why string) {
	if r == nil {
		return true, "there is no rule, so everyone may"
	}
	if !r.Names(c) {
		return false, "the rule names " + r.named()
	}
	by := r.namesBy(c)
	if r.When != nil {
		ok, err := r.When.Bool(s)
		switch {
		case err != nil:
			return false, by + ", but the condition (when) cannot be evaluated"
		case !ok:
			return false, by + ", but the condition (when) does not hold"
		}
		by += ", and the condition (when) holds"
	}
	if r.Deny != nil && r.Deny.hits(c, s) {
		return false, "deny applies: " + r.Deny.namesBy(c)
	}
	return true, by
}

// named is whom the lists of a rule name.
func (r *Rule) named() string {
	var parts []string
	for _, list := range r.lists() {
		if len(list.names) > 0 {
			parts = append(parts, list.what+" "+strings.Join(list.names, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// namesBy is by what a rule names a caller.
func (r *Rule) namesBy(c *Caller) string {
	for _, list := range r.lists() {
		for _, name := range list.names {
			if anyOf([]string{name}, list.held(c)) {
				return "by " + list.what + " " + name
			}
		}
	}
	return "the rule names everyone"
}

type ruleList struct {
	what  string
	names []string
	held  func(*Caller) []string
}

func (r *Rule) lists() []ruleList {
	return []ruleList{
		{"user", r.Users, func(c *Caller) []string { return []string{c.ID} }},
		{"role", r.Roles, func(c *Caller) []string { return c.Roles }},
		{"privilege", r.Privileges, func(c *Caller) []string { return c.Privileges }},
	}
}
