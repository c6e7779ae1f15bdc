package statemachine

// The keys of each element of a definition (statemachine/DEFINITION.md, "Keys").
// Messages list them in this order.
var (
	definitionKeys = []string{
		"$schema", "id", "name", "description", "version", "allow", "unmatched", "const", "context", "create",
		"schema", "indexes", "events", "stateMachines", "guards", "actions", "tags", "meta",
	}
	// documentKeys are those of context, create and schema.
	documentKeys = []string{"svcPublic", "svcPrivate"}
	rightKeys    = []string{"create", "read", "send"}
	ruleKeys     = []string{"roles", "privileges", "users", "when", "deny"}
	eventKeys    = []string{"data", "into", "apply", "unmatched", "private", "allow", "description"}
	nodeKeys     = []string{
		"type", "initial", "states", "on", "always", "entry", "exit", "onDone", "history", "target", "output",
		"tags", "meta", "description",
	}
	transitionKeys = []string{"target", "guard", "allow", "actions", "reenter", "into", "apply", "description"}
	guardKeys      = []string{"type"}
	actionKeys     = []string{"assign", "raise", "redirect", "log", "if", "foreach"}
	raiseKeys      = []string{"event", "data"}
	ifKeys         = []string{"if", "then", "elseif", "else"}
	branchKeys     = []string{"if", "then"} // of elseif
	forEachKeys    = []string{"array", "item", "index", "do"}
)

// The words that some of the keys take.
var (
	nodeTypes = map[string]kind{
		"atomic": atomic, "compound": compound, "parallel": parallel, "final": final, "history": shallowHistory,
	}
	historyTypes   = map[string]kind{"shallow": shallowHistory, "deep": deepHistory}
	unmatchedWords = map[string]unmatched{
		"record": unmatchedRecord, "reject": unmatchedReject, "ignore": unmatchedIgnore, "apply": unmatchedApply,
	}
	intoWords  = map[string]root{"svcPublic": rootPublic, "svcPrivate": rootPrivate}
	applyWords = map[string]applyRule{"merge": applyMerge, "replace": applyReplace, "none": applyNone}
)

// later names keys of statecharts that this version does not run, with what they
// are for (statemachine/DEFINITION.md, "Later versions").
var later = map[string]string{
	"after":    "timers",
	"invoke":   "child workflows",
	"webhook":  "webhooks",
	"webhooks": "webhooks",
	"send":     "delayed events",
	"cancel":   "delayed events",
	"migrate":  "migration of running instances",
	"import":   "imports",
	"imports":  "imports",
}
