package workflow

import "troupe/statemachine/data"

// render writes the two parts of an instance record's JSON around its history.
func render(workflowID, instanceID string, public, private data.Value, states []byte, redirect string) (head, tail []byte) {
	size := len(public) + len(private) + len(states) + len(workflowID) + len(redirect) + 160
	b := make([]byte, 0, size)
	b = append(b, `"_id":"`...)
	b = append(b, instanceID...)
	b = append(b, `","workflowId":"`...)
	b = append(b, workflowID...)
	b = append(b, `","svcPublic":`...)
	b = append(b, public...)
	b = append(b, `,"svcPrivate":`...)
	b = append(b, private...)
	cut := len(b)
	b = append(b, `"states":`...)
	b = append(b, states...)
	if redirect != "" {
		b = append(b, `,"svcRedirect":`...)
		b = data.AppendString(b, redirect)
	}
	return b[:cut:cut], b[cut:]
}
