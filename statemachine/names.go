package statemachine

import (
	"time"

	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/clause"
	"troupe/statemachine/internal/coverage"
	"troupe/statemachine/internal/fault"
	"troupe/statemachine/internal/record"
)

// The API's names for what a definition says of itself: names (statemachine/DEFINITION.md, "Names"), texts and rights. The
// parser builds them, and from then on they are only read.
type (
	// WorkflowID names a workflow; the others what is in it.
	WorkflowID = chart.WorkflowID
	MachineID  = chart.MachineID
	NodeID     = chart.NodeID
	EventName  = chart.EventName
	// Position is one entry of states, NodePresentation one with how people see it, and Region what a position is about.
	Position         = chart.Position
	NodePresentation = chart.NodePresentation
	Region           = chart.Region

	// Text is a text for people, made of Translations.
	Text        = chart.Text
	Translation = chart.Translation
	Tone        = chart.Tone
	Style       = chart.Style
	NodeLabel   = chart.NodeLabel
	EventLabel  = chart.EventLabel
	Column      = chart.Column

	// Caller acts, and Right is what a rule says of one.
	Caller     = chart.Caller
	Right      = chart.Right
	Owners     = chart.Owners
	Candidates = chart.Candidates
	TaskForm   = chart.TaskForm

	// Webhook is where deliveries of one name go; the others are about the world around, too.
	Webhook    = chart.Webhook
	Retry      = chart.Retry
	JobType    = chart.JobType
	Schedule   = chart.Schedule
	Missed     = chart.Missed
	Invocation = chart.Invocation
	Reference  = chart.Reference
	Effect     = chart.Effect

	// ParserOptions says what a definition may refer to, and Source is its text with what it does refer to.
	ParserOptions = clause.Options
	Source        = clause.Source

	// Instance is a workflow instance as a value, Record what of it can be read without its definition, and Entry one entry of its history.
	Instance = record.Instance
	Record   = record.Record
	Chain    = record.Chain
	Entry    = record.Entry
	// ElementID tells timers, tasks, jobs and children apart; the others are what an instance waits for, and what waits for it.
	ElementID   = record.ElementID
	Timer       = record.Timer
	Task        = record.Task
	Job         = record.Job
	Child       = record.Child
	ChildStatus = record.ChildStatus
	Parent      = record.Parent
	// Fault says where and why a step failed.
	Fault = fault.Fault
	// Delivery is what an event sends out of the instance; the others are in it.
	Delivery     = record.Delivery
	ChildStart   = record.ChildStart
	ChildEnd     = record.ChildEnd
	ParentNotice = record.ParentNotice
	Forward      = record.Forward

	// Chart is a definition's statechart as a picture shows it.
	Chart           = chart.Picture
	ChartNode       = chart.PictureNode
	ChartTransition = chart.PictureTransition
	NodeKind        = chart.NodeKind
	Trigger         = chart.Trigger

	// Coverage counts what instances reach of a definition, and Covered is a part of one.
	Coverage    = coverage.Coverage
	CoveredKind = coverage.Kind
	Covered     = coverage.Part
)

// The kinds of nodes, the triggers of transitions, tones, styles, rights, what happens to runs that were missed, and of children.
const (
	Atomic         = chart.Atomic
	Compound       = chart.Compound
	Parallel       = chart.Parallel
	Final          = chart.Final
	ShallowHistory = chart.ShallowHistory
	DeepHistory    = chart.DeepHistory

	OnEvent     = chart.OnEvent
	Always      = chart.Always
	AfterDelay  = chart.AfterDelay
	OnDone      = chart.OnDone
	InvokeDone  = chart.InvokeDone
	InvokeError = chart.InvokeError
	JobDone     = chart.JobDone
	JobError    = chart.JobError

	Neutral      = chart.Neutral
	Waiting      = chart.Waiting
	Good         = chart.Good
	Bad          = chart.Bad
	DefaultStyle = chart.DefaultStyle
	PrimaryStyle = chart.PrimaryStyle
	DangerStyle  = chart.DangerStyle

	Denied     = chart.Denied
	ByInstance = chart.ByInstance
	Granted    = chart.Granted

	MissedOne  = chart.MissedOne
	MissedSkip = chart.MissedSkip
	MissedAll  = chart.MissedAll

	ChildRuns      = record.ChildRuns
	ChildDone      = record.ChildDone
	ChildFailed    = record.ChildFailed
	ChildCancelled = record.ChildCancelled

	// MaxDataBytes bounds svcPublic and svcPrivate together, and MaxDepth how many instances can stand above one.
	MaxDataBytes = record.MaxDataBytes
	MaxDepth     = record.MaxDepth
	// TimeLayout is how times are written.
	TimeLayout = record.TimeLayout

	// System is the user of events that nobody sent. It has no roles.
	System = chart.System
)

// IsIdentifier reports whether s has the form of an identifier in paths and bodies: [A-Za-z0-9][A-Za-z0-9._~-]{0,127}.
func IsIdentifier(s string) bool { return chart.IsIdentifier(s) }

// IsNodeName reports whether a state can have the name; with the rules of SCXML it may have dots.
func IsNodeName(s string, rulesOfSCXML bool) bool { return chart.IsNodeName(s, rulesOfSCXML) }

// IsReserved reports whether only the machine itself raises events of the name.
func IsReserved(name EventName) bool { return chart.IsReserved(name) }

// ParseWorkflowID returns s as a WorkflowID, and false when it cannot be one.
func ParseWorkflowID(s string) (WorkflowID, bool) { return chart.ParseWorkflowID(s) }

// ParseEventName returns s as an EventName, and false when no definition could declare it.
func ParseEventName(s string) (EventName, bool) { return chart.ParseEventName(s) }

// ParseDelay reads a constant delay as a definition writes it (statemachine/DEFINITION.md, "Delays").
func ParseDelay(text string) (time.Duration, error) { return chart.ParseDelay(text) }

// SplitText cuts a text for people into literals and the expressions in ${…}.
func SplitText(text string) (parts []string, isExpression []bool) { return chart.SplitText(text) }

// Plain is a text for every reader; that of "" is not a text.
func Plain(text string) Text { return chart.Plain(text) }

// NodeNames lists the nodes of positions, joined with ", ".
func NodeNames(positions []Position) string { return chart.NodeNames(positions) }

// ReadText reads a text without expressions, or a map of languages, and adds what is wrong to faults, and what looks like a slip to warnings.
// stored says that it was accepted once; nil has no text.
func ReadText(faults, warnings *document.Collector, n *document.Node, stored bool) Text {
	return clause.ReadText(faults, warnings, n, stored)
}

// CheckWebhookURL refuses what nothing can be sent to.
func CheckWebhookURL(text string) error { return clause.CheckWebhookURL(text) }

// AppendNodes appends a list of names as a JSON array.
func AppendNodes(dst []byte, nodes []NodeID) []byte { return record.AppendNodes(dst, nodes) }

// NewCoverage returns a Coverage of a definition of which nothing is reached yet.
func NewCoverage(d *Definition) *Coverage { return coverage.New(&d.Definition) }

// MaxKeyChars is the longest key of an instance, in characters.
const MaxKeyChars = chart.MaxKeyChars

// IsKey reports whether text can be the key of an instance: 1 to MaxKeyChars characters that can be seen.
func IsKey(text string) bool { return chart.IsKey(text) }

// ParseRecord reads the stored form. It returns ErrRecord for anything that AppendRecord did not write.
func ParseRecord(b []byte) (Record, error) { return record.Parse(b) }

// RecordFromJSON returns the stored form of what Record.AppendJSON has written, with a chain.
func RecordFromJSON(text []byte, chain Chain) ([]byte, error) { return record.FromJSON(text, chain) }
