package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"

	"troupe/actors/form"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/template"
)

// route is one row of the table: what a path answers, and to whom.
type route struct {
	// name is what the route is called in metrics, logs and fingerprints. It
	// must never change: stored fingerprints hold it.
	name   string
	method string
	// path stands behind the base path; ":x" is one segment.
	path  string
	group group
	// access says who may come. A row without it does not register, so that a
	// forgotten policy is a server that does not start.
	access access
	// privilege is what the caller must hold besides; empty is none.
	privilege identity.Privilege
	// orPrivilege is one with which the caller may come just as well.
	orPrivilege identity.Privilege
	// query lists the parameters that the route knows. Others are refused.
	query []string
	// ignoresQuery marks pages: their query is for the script, and nobody here looks
	// at it.
	ignoresQuery bool
	// anyQuery lets parameters pass that the route does not know: a provider adds
	// what it likes. They stand there once, like all.
	anyQuery bool
	// page answers errors with the login page instead of JSON: a person looks at
	// them.
	page bool
	// strict refuses other sites' pages with every method, not only with those
	// that change something: for answers that no link leads to, but that cost
	// something while they last.
	strict bool
	// secret marks answers that give out a credential or show whose it is: they are
	// never compressed, see mayCompress.
	secret bool
	// once: although its method is safe, it is not repeated at another node.
	once bool
	// readsBody: handle reads the body itself, which may be JSON in lines too.
	readsBody bool
	// content is the type of the body, if it is not JSON, and contentBytesMax its bound in place of
	// Options.BodyBytesMax. takesYAML: it may be YAML too, and the handler reads it.
	content         string
	takesYAML       bool
	contentBytesMax int64
	// handle answers the request, or returns the error to answer it with.
	handle func(*exchange) error

	// metrics is set by compile.
	metrics *routeMetrics
}

// access is who may use a route. The zero value is nobody, and refused.
type access struct {
	declared bool
	// kinds are the credentials that the route takes; none means that it takes
	// requests without one.
	kinds identity.Kind
	// ending marks what ends a session: it also takes a session already ended but not
	// durably so, so that a repeated sign-out waits.
	ending bool
	// probe marks health: answered while starting, draining and full, with any
	// query, and read by nobody but machines.
	probe bool
	// signIn marks what gives out a credential: pages of other sites are refused
	// although there is no cookie, so that nobody is signed in as another without
	// noticing, and so is every content type that a form can send.
	signIn bool
}

// signedIn demands a credential of one of the kinds.
func signedIn(kinds identity.Kind) access { return access{declared: true, kinds: kinds} }

var (
	// probed is for health.
	probed = access{declared: true, probe: true}
	// public is for everybody.
	public = access{declared: true}
	// signingOut is for sessions, also those whose end is not durable yet.
	signingOut = access{declared: true, kinds: identity.Session, ending: true}
	// signingIn is for everybody who asks on a page of ours, or on none.
	signingIn = access{declared: true, signIn: true}
)

// routes is the table of operations, which gateway/openapi.yaml describes.
func routes() []route {
	return slices.Concat(workflowRoutes(), definitionRoutes(), presentationRoutes(), operationRoutes(), taskRoutes(), portalRoutes(), taskFormRoutes(), ownRoutes(), fileRoutes(), adminRoutes())
}

// definitionRoutes are those of definitions, in group B.
func definitionRoutes() []route {
	const workflowPath = "/workflow/api/v1"
	workflowAccess := signedIn(identity.Token | identity.Session)
	return []route{
		{
			name: "definitions", method: http.MethodGet, path: workflowPath + "/definitions",
			group: groupWorkflow, access: workflowAccess, privilege: identity.Workflows, handle: listDefinitions,
		},
		{
			name: "definition", method: http.MethodGet, path: workflowPath + "/definitions/:workflowId",
			group: groupWorkflow, access: workflowAccess, privilege: identity.Workflows, handle: showDefinition,
		},
		{
			name: "definition-version", method: http.MethodGet, path: workflowPath + "/definitions/:workflowId/:version",
			group: groupWorkflow, access: workflowAccess, privilege: identity.Workflows, handle: showDefinition,
		},
		{
			name: "publish-definition", method: http.MethodPut, path: workflowPath + "/definitions/:workflowId",
			group: groupWorkflow, access: workflowAccess, privilege: identity.Workflows,
			query: []string{"dryRun"}, takesYAML: true, contentBytesMax: home.MaxFileBytes, handle: publishDefinition,
		},
		{
			name: "publish-definition-version", method: http.MethodPut, path: workflowPath + "/definitions/:workflowId/:version",
			group: groupWorkflow, access: workflowAccess, privilege: identity.Workflows,
			query: []string{"dryRun"}, takesYAML: true, contentBytesMax: home.MaxFileBytes, handle: publishDefinition,
		},
		{
			name: "retire-definition", method: http.MethodDelete, path: workflowPath + "/definitions/:workflowId",
			group: groupWorkflow, access: workflowAccess, privilege: identity.Workflows, handle: retireDefinition,
		},
		{
			name: "retire-definition-version", method: http.MethodDelete, path: workflowPath + "/definitions/:workflowId/:version",
			group: groupWorkflow, access: workflowAccess, privilege: identity.Workflows, handle: retireDefinition,
		},
	}
}

// workflowRoutes is group B.
func workflowRoutes() []route {
	const workflowPath = "/workflow/api/v1"
	workflowAccess := signedIn(identity.Token | identity.Session)
	return []route{
		{
			name: "create", method: http.MethodPost, path: workflowPath + "/create",
			group: groupWorkflow, access: workflowAccess, handle: createInstance,
		},
		{
			name: "event", method: http.MethodPost, path: workflowPath + "/event",
			group: groupWorkflow, access: workflowAccess, handle: sendEvent,
		},
		{
			name: "batch", method: http.MethodPost, path: workflowPath + "/events",
			group: groupWorkflow, access: workflowAccess, readsBody: true, handle: sendBatch,
		},
		{
			name: "instance", method: http.MethodGet, path: workflowPath + "/instance/:workflowId/:instanceId",
			group: groupWorkflow, access: workflowAccess, handle: loadInstance,
		},
		{
			name: "instances", method: http.MethodGet, path: workflowPath + "/instances/:workflowId",
			group: groupWorkflow, access: workflowAccess,
			query: []string{"filter", "limit", "cursor", "sort", "fields", "count", "explain"}, handle: queryInstances,
		},
		{
			name: "requests", method: http.MethodGet, path: workflowPath + "/requests",
			group: groupWorkflow, access: workflowAccess,
			query: []string{"kind", "category", "workflowId", "q", "sort", "limit", "cursor", "count"}, handle: pageRequests,
		},
		{
			name: "choices", method: http.MethodGet, path: workflowPath + "/choices",
			group: groupWorkflow, access: workflowAccess, handle: listChoices,
		},
		{
			name: "events", method: http.MethodGet, path: workflowPath + "/instance/:workflowId/:instanceId/events",
			group: groupWorkflow, access: workflowAccess, handle: listEvents,
		},
		{
			name: "history", method: http.MethodGet, path: workflowPath + "/instance/:workflowId/:instanceId/history",
			group: groupWorkflow, access: workflowAccess, query: []string{"limit", "cursor", "fields", "order"}, handle: listHistory,
		},
		{
			name: "changes", method: http.MethodGet, path: workflowPath + "/changes",
			group: groupWorkflow, access: workflowAccess, strict: true,
			query: []string{"since", "workflowId", "limit", "wait"}, handle: listChanges,
		},
		{
			name: "watch", method: http.MethodGet, path: workflowPath + "/watch/:workflowId",
			group: groupWorkflow, access: workflowAccess, strict: true, query: []string{"filter"}, handle: watchInstances,
		},
		{
			name: "watch-instance", method: http.MethodGet, path: workflowPath + "/watch/:workflowId/:instanceId",
			group: groupWorkflow, access: workflowAccess, strict: true, query: []string{"filter"}, handle: watchInstances,
		},
	}
}

// portalRoutes is group A, and the form runtime.
func portalRoutes() []route {
	return []route{
		portalRow("role-info", "/role-info", identity.FormPortal, showRoleInfo),
		portalRow("portal-workflows", "/workflows", identity.FormPortal, listPortalWorkflows),
		portalRow("forms-current", "/forms/mycurrent", identity.FormPortal, listForms(form.KindForm, form.Current)),
		portalRow("forms-submitted", "/forms/mysubmitted", identity.FormPortal, listForms(form.KindForm, form.Submitted)),
		portalRow("forms-archived", "/forms/myarchived", identity.FormPortal, listForms(form.KindForm, form.Archived)),
		portalRow("checklists-current", "/checklists/mycurrent", identity.FormPortal, listForms(form.KindChecklist, form.Current)),
		portalRow("checklists-submitted", "/checklists/mysubmitted", identity.FormPortal, listForms(form.KindChecklist, form.Submitted)),
		portalRow("checklists-archived", "/checklists/myarchived", identity.FormPortal, listForms(form.KindChecklist, form.Archived)),
		portalRow("form-templates", "/forms/role/:roleId", identity.Form, listTemplates(form.KindForm)),
		portalRow("checklist-templates", "/checklists/role/:roleId", identity.Checklist, listTemplates(form.KindChecklist)),
		{
			name: "create-form", method: http.MethodPost, path: portalPath + "/forms/create",
			group: groupPortal, access: signedIn(identity.Session), privilege: identity.Form, handle: createForm,
		},
		{
			name: "create-checklist", method: http.MethodPost, path: portalPath + "/checklists/create",
			group: groupPortal, access: signedIn(identity.Session), privilege: identity.Checklist, handle: createChecklist,
		},
		{
			name: "form", method: http.MethodGet, path: runtimePath + "/form/:workflowId/:instanceId",
			group: groupPortal, access: signedIn(identity.Session), privilege: identity.FormPortal, handle: showForm,
		},
		{
			name: "forms", method: http.MethodGet, path: runtimePath + "/forms",
			group: groupPortal, access: signedIn(identity.Session), privilege: identity.FormPortal,
			query: []string{"kind", "category", "workflowId", "q", "sort", "limit", "cursor", "count"}, handle: pageForms,
		},
		{
			name: "delete-form", method: http.MethodDelete, path: runtimePath + "/form/:workflowId/:instanceId",
			group: groupPortal, access: signedIn(identity.Session), privilege: identity.FormPortal, handle: deleteForm,
		},
		{
			name: "template", method: http.MethodGet, path: runtimePath + "/template/:kind/:formId",
			group: groupPortal, access: signedIn(identity.Session), privilege: identity.FormPortal, handle: showTemplate,
		},
		{
			name: "save-draft", method: http.MethodPut, path: runtimePath + "/draft/:workflowId/:instanceId",
			group: groupPortal, access: signedIn(identity.Session), privilege: identity.FormPortal, handle: saveDraft,
		},
		{
			name: "drop-draft", method: http.MethodDelete, path: runtimePath + "/draft/:workflowId/:instanceId",
			group: groupPortal, access: signedIn(identity.Session), privilege: identity.FormPortal, handle: dropDraft,
		},
		{
			name: "submit-form", method: http.MethodPost, path: runtimePath + "/submit",
			group: groupPortal, access: signedIn(identity.Session), privilege: identity.FormPortal, handle: submitForm,
		},
	}
}

// ownRoutes belong to no group: sessions, pages, the interface's description, health.
func ownRoutes() []route {
	return []route{
		{name: "sign-in", method: http.MethodPost, path: "/session", access: signingIn, secret: true, handle: signIn},
		{name: "session", method: http.MethodGet, path: "/session", access: signedIn(identity.Session), secret: true, handle: showSession},
		{name: "sign-out", method: http.MethodDelete, path: "/session", access: signingOut, secret: true, handle: signOut},
		{name: "login", method: http.MethodGet, path: "/login", access: public, query: []string{"next"}, handle: showLogin},
		{
			name: "login-provider", method: http.MethodGet, path: "/login/oidc", access: signingIn,
			page: true, strict: true, secret: true, query: []string{"next"}, handle: beginProvider,
		},
		{
			name: "login-callback", method: http.MethodGet, path: callbackPath, access: public,
			page: true, anyQuery: true, secret: true, once: true, // it spends the provider's code
			handle: finishProvider,
		},
		{name: "favicon", method: http.MethodGet, path: "/favicon.ico", access: public, handle: showIcon},
		{name: "login-style", method: http.MethodGet, path: "/login/style.css", access: public, handle: showLoginStyle},
		{name: "login-script", method: http.MethodGet, path: "/login/script.js", access: public, handle: showLoginScript},
		{name: "portal", method: http.MethodGet, path: "/", access: public, ignoresQuery: true, handle: showPage},
		{
			name: "form-page", method: http.MethodGet, path: "/form-runtime/:formId/:workflowId/:instanceId/index.html",
			access: public, ignoresQuery: true, handle: showPage,
		},
		{
			name: "instance-page", method: http.MethodGet, path: "/instances/:workflowId/:instanceId",
			access: public, ignoresQuery: true, handle: showPage,
		},
		{name: "operations-page", method: http.MethodGet, path: "/operations", access: public, ignoresQuery: true, handle: showPage},
		{name: "asset", method: http.MethodGet, path: "/assets/:name", access: public, handle: showAsset},
		{name: "openapi-yaml", method: http.MethodGet, path: "/openapi.yaml", access: public, handle: showInterfaceYAML},
		{name: "openapi-json", method: http.MethodGet, path: "/openapi.json", access: public, handle: showInterfaceJSON},
		{name: "schema", method: http.MethodGet, path: "/schemas/:file", access: public, handle: showSchema},
		{name: "docs", method: http.MethodGet, path: "/docs", access: public, handle: showInterface},
		{name: "livez", method: http.MethodGet, path: "/livez", access: probed, handle: answerLive},
		{name: "readyz", method: http.MethodGet, path: "/readyz", access: probed, handle: answerReady},
	}
}

// fileRoutes are groups C and D.
func fileRoutes() []route {
	return []route{
		{
			name: "report-parameters", method: http.MethodGet, path: "/rml-engine/api/v1/parameters",
			group: groupFile, access: signedIn(identity.Token | identity.Session), query: []string{"rml"}, handle: listParameters(template.Report),
		},
		{
			name: "document-parameters", method: http.MethodGet, path: "/docx-engine/api/v1/parameters",
			group: groupFile, access: signedIn(identity.Token | identity.Session), query: []string{"docx"}, handle: listParameters(template.Document),
		},
		{
			name: "list-files", method: http.MethodGet, path: "/repository/api/v1/list-files",
			group: groupFile, access: signedIn(identity.Token | identity.Session), query: []string{"extension"}, handle: listFiles,
		},
	}
}

// adminRoutes are for those who run the service.
func adminRoutes() []route {
	return []route{
		{
			name: "health", method: http.MethodGet, path: adminPath + "/health",
			access: signedIn(identity.Token | identity.Session), privilege: identity.Workflows, orPrivilege: identity.Admin, handle: showHealth,
		},
		{
			name: "publish-home", method: http.MethodPut, path: adminPath + "/home",
			access: signedIn(identity.Token | identity.Session), privilege: identity.Admin,
			query: []string{"dryRun"}, content: "application/x-tar", contentBytesMax: home.MaxPackedBytes, handle: publishHome,
		},
	}
}

// apiPaths is what groups A to D hang below, the form runtime's interface and that for admins:
// whoever asks there is a program.
var apiPaths = []string{portalPath, runtimePath, "/workflow", "/rml-engine", "/docx-engine", "/repository", adminPath}

const (
	adminPath   = "/admin/api/v1"
	portalPath  = "/form-portal"
	runtimePath = "/form-runtime/api/v1"
)

// portalRow is a row for reading in group A.
func portalRow(name, path string, p identity.Privilege, handle func(*exchange) error) route {
	return route{
		name: name, method: http.MethodGet, path: portalPath + path,
		group: groupPortal, access: signedIn(identity.Session), privilege: p, handle: handle,
	}
}

// compile checks the table and builds the router from it. It returns all
// faults of the table together.
func (s *Server) compile(table []route) error {
	var faults []error
	s.router, s.runtimeRouter = s.newRouter(), s.newRouter()
	for i := range table {
		rt := &table[i]
		if err := s.register(rt); err != nil {
			faults = append(faults, fmt.Errorf("route %s %s: %w", rt.method, rt.path, err))
		}
	}
	s.table = table
	slices.Sort(s.methods)
	s.methods = slices.Compact(s.methods)
	return errors.Join(faults...)
}

func (s *Server) newRouter() *httprouter.Router {
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
func (s *Server) routerOf(path string) *httprouter.Router {
	if strings.HasPrefix(path, s.options.BasePath+"/form-runtime/api/") {
		return s.runtimeRouter
	}
	return s.router
}

// register adds one row, and HEAD beside GET.
func (s *Server) register(rt *route) (err error) {
	switch {
	case rt.name == "" || rt.handle == nil:
		return errors.New("it has no name or no handler")
	case !rt.access.declared:
		return errors.New("it does not declare who may use it")
	case rt.access.kinds != 0 && (rt.access.probe || rt.access.signIn):
		return errors.New("it demands a credential of those who have none")
	case rt.access.kinds == 0 && rt.privilege != "":
		return errors.New("it demands a privilege, but no credential")
	case slices.ContainsFunc(s.metrics.routes, func(m *routeMetrics) bool { return m.name == rt.name }):
		return errors.New("its name is taken")
	}
	rt.metrics = s.metrics.add(rt.name)
	// NB: httprouter panics on paths that are in each other's way.
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("it cannot be registered: %v", reason)
		}
	}()
	handle := func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		s.serve(rt, w, r, params)
	}
	methods := []string{rt.method}
	if rt.method == http.MethodGet {
		methods = append(methods, http.MethodHead)
	}
	for _, method := range methods {
		path := s.options.BasePath + rt.path
		s.routerOf(path).Handle(method, path, handle)
		s.methods = append(s.methods, method)
	}
	return nil
}
