package kernel

// The paths that groups of operations hang below.
const (
	AdminPath    = "/admin/api/v1"
	PortalPath   = "/form-portal"
	RuntimePath  = "/form-runtime/api/v1"
	WorkflowPath = "/workflow/api/v1"
)

// reservedPath is what no form's page has: formportal.reservedID keeps templates from the id "api".
const reservedPath = "/form-runtime/api/"

// APIPaths is what groups A to D hang below, the form runtime's interface and that for admins:
// whoever asks there is a program.
var APIPaths = []string{PortalPath, RuntimePath, "/workflow", "/rml-engine", "/docx-engine", "/repository", AdminPath}
