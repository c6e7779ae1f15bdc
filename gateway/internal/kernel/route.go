package kernel

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"

	"troupe/actors/identity"
)

// Route is one row of the table: what a path answers, and to whom.
type Route struct {
	// Name is what the route is called in metrics, logs and fingerprints. It
	// must never change: stored fingerprints hold it.
	Name   string
	Method string
	// Path stands behind the base path; ":x" is one segment.
	Path  string
	Group Group
	// Access says who may come. A row without it does not register, so that a
	// forgotten policy is a server that does not start.
	Access Access
	// Privilege is what the caller must hold besides; empty is none.
	Privilege identity.Privilege
	// OrPrivilege is one with which the caller may come just as well.
	OrPrivilege identity.Privilege
	// Query lists the parameters that the route knows. Others are refused.
	Query []string
	// IgnoresQuery marks pages: their query is for the script, and nobody here looks
	// at it.
	IgnoresQuery bool
	// AnyQuery lets parameters pass that the route does not know: a provider adds
	// what it likes. They stand there once, like all.
	AnyQuery bool
	// ErrorPage answers errors with a page instead of JSON: a person looks at them.
	ErrorPage func(x *Exchange, status int)
	// Strict refuses other sites' pages with every method, not only with those
	// that change something: for answers that no link leads to, but that cost
	// something while they last.
	Strict bool
	// Secret marks answers that give out a credential or show whose it is: they are
	// never compressed, see mayCompress.
	Secret bool
	// once: although its method is safe, it is not repeated at another node.
	Once bool
	// ReadsBody: handle reads the body itself, which may be JSON in lines too.
	ReadsBody bool
	// Content is the type of the body, if it is not JSON, and ContentBytesMax its bound in place of
	// Options.BodyBytesMax. TakesYAML: it may be YAML too, and the handler reads it.
	Content         string
	TakesYAML       bool
	ContentBytesMax int64
	// Handle answers the request, or returns the error to answer it with.
	Handle func(*Exchange) error

	// metrics is set by compile.
	metrics *routeMetrics
}

// Access is who may use a route. The zero value is nobody, and refused.
type Access struct {
	declared bool
	// Kinds are the credentials that the route takes; none means that it takes
	// requests without one.
	Kinds identity.Kind
	// ending marks what ends a session: it also takes a session already ended but not
	// durably so, so that a repeated sign-out waits.
	ending bool
	// Probe marks health: answered while starting, draining and full, with any
	// query, and read by nobody but machines.
	Probe bool
	// SignIn marks what gives out a credential: pages of other sites are refused
	// although there is no cookie, so that nobody is signed in as another without
	// noticing, and so is every content type that a form can send.
	SignIn bool
}

// SignedIn demands a credential of one of the kinds.
func SignedIn(kinds identity.Kind) Access { return Access{declared: true, Kinds: kinds} }

var (
	// Probed is for health.
	Probed = Access{declared: true, Probe: true}
	// Public is for everybody.
	Public = Access{declared: true}
	// SigningOut is for sessions, also those whose end is not durable yet.
	SigningOut = Access{declared: true, Kinds: identity.Session, ending: true}
	// SigningIn is for everybody who asks on a page of ours, or on none.
	SigningIn = Access{declared: true, SignIn: true}
)

// compile checks the table and builds the router from it. It returns all
// faults of the table together.
func (s *Kernel) compile(table []Route) error {
	var faults []error
	s.router, s.runtimeRouter = s.newRouter(), s.newRouter()
	for i := range table {
		rt := &table[i]
		if err := s.register(rt); err != nil {
			faults = append(faults, fmt.Errorf("route %s %s: %w", rt.Method, rt.Path, err))
		}
	}
	s.Table = table
	slices.Sort(s.methods)
	s.methods = slices.Compact(s.methods)
	return errors.Join(faults...)
}

func (s *Kernel) newRouter() *httprouter.Router {
	r := httprouter.New()
	// NB: a redirect would turn a POST into a GET; a path is right or it is 404.
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.NotFound = http.HandlerFunc(s.answerNotFound)
	r.MethodNotAllowed = http.HandlerFunc(s.answerNotAllowed)
	return r
}

// routerOf returns the router that has a path. The pages of forms have the
// template's id where the API of the form runtime has the word "api", and httprouter
// cannot have both in one tree. formportal.reservedID keeps templates from that id.
func (s *Kernel) routerOf(path string) *httprouter.Router {
	if strings.HasPrefix(path, s.Options.BasePath+reservedPath) {
		return s.runtimeRouter
	}
	return s.router
}

// register adds one row, and HEAD beside GET.
func (s *Kernel) register(rt *Route) (err error) {
	switch {
	case rt.Name == "" || rt.Handle == nil:
		return errors.New("it has no name or no handler")
	case !rt.Access.declared:
		return errors.New("it does not declare who may use it")
	case rt.Access.Kinds != 0 && (rt.Access.Probe || rt.Access.SignIn):
		return errors.New("it demands a credential of those who have none")
	case rt.Access.Kinds == 0 && rt.Privilege != "":
		return errors.New("it demands a privilege, but no credential")
	case slices.ContainsFunc(s.metrics.routes, func(m *routeMetrics) bool { return m.name == rt.Name }):
		return errors.New("its name is taken")
	}
	rt.metrics = s.metrics.add(rt.Name)
	// NB: httprouter panics on paths that are in each other's way.
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("it cannot be registered: %v", reason)
		}
	}()
	handle := func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		s.serve(rt, w, r, params)
	}
	methods := []string{rt.Method}
	if rt.Method == http.MethodGet {
		methods = append(methods, http.MethodHead)
	}
	for _, method := range methods {
		path := s.Options.BasePath + rt.Path
		s.routerOf(path).Handle(method, path, handle)
		s.methods = append(s.methods, method)
	}
	return nil
}
