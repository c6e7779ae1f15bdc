package gateway

import (
	"context"
	"net/http"

	"troupe/actors/identity"
	"troupe/statemachine"
)

// operator is who runs the service on its own machine, and shows no credential. Whoever can open the socket can change the
// home's files, so there is no more to give than mod-admin.
var operator = &identity.Principal{ID: statemachine.System, Privileges: []string{string(identity.Admin), string(identity.Workflows)}}

// operatorKey is the key of a request of the operator in its context.
type operatorKey struct{}

// OperatorHandler answers requests of who runs the service, without a credential, where mod-workflows is demanded. The
// paths stand without Options.BasePath. Only that person may reach it: it is for the socket in the home.
func (s *Server) OperatorHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(context.WithValue(r.Context(), operatorKey{}, true))
		r.URL.Path = s.options.BasePath + r.URL.Path
		s.ServeHTTP(w, r)
	})
}

// isOperator reports whether the request is one of the operator, here or at the node that forwarded it.
func (x *exchange) isOperator() bool {
	if x.sender != nil {
		return x.sender.Operator
	}
	return x.r.Context().Value(operatorKey{}) != nil
}
