package operate

import (
	"strings"
	"unicode/utf8"

	"troupe/actors/audit"
	"troupe/actors/message"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/data"
)

// reasonRunesMax is the longest reason of a reset, in characters: the history keeps it whole.
const reasonRunesMax = 1000

func resetShape(path string) *parse.Shape {
	return parse.NewShape(path, parse.Field{Name: "to", Required: true}, parse.Field{Name: "reason", Kind: data.String, Required: true})
}

var instanceResetShape = resetShape("")

func parseReset(body data.Value, shape *parse.Shape) (to uint64, reason string, err error) {
	var members [2]data.Value
	if err := shape.Read(body, members[:]); err != nil {
		return 0, "", err
	}
	n, ok := members[0].Int64()
	if !ok || n < 1 {
		return 0, "", parse.Malformed(`"to" must be the number of an entry of the history, from 1`)
	}
	reason = members[1].Text()
	if length := utf8.RuneCountInString(reason); length > reasonRunesMax || strings.TrimSpace(reason) == "" {
		return 0, "", parse.Malformed(`"reason" must have 1 to %d characters, and not only blanks`, reasonRunesMax)
	}
	return uint64(n), reason, nil
}

func (g *Group) resetInstance(x *kernel.Exchange) error {
	of, err := x.InstanceRequest()
	if err != nil {
		return err
	}
	key, body, err := x.KeyedBody()
	if err != nil {
		return err
	}
	request := &message.Reset{Load: *of, Span: x.Span}
	if request.To, request.Reason, err = parseReset(body, instanceResetShape); err != nil {
		return err
	}
	if request.IfMatch, err = parse.IfMatch(x.Request.Header["If-Match"]); err != nil {
		return err
	}
	if request.Retry, err = kernel.RetryOf(x, key, "", body); err != nil {
		return err
	}
	request.WithHistory = !parse.PrefersMinimal(x.Request.Header["Prefer"])
	reply, err := g.Workflows.Reset(x.Request.Context(), request)
	if err != nil {
		return err
	}
	x.Note(audit.InstanceReset, of.WorkflowID+"/"+of.InstanceID)
	x.AnswerInstance(reply)
	return nil
}
