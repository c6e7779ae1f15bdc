package statemachine

import (
	"troupe/statemachine/internal/chart"
)

// Title returns the line that tells an instance from its siblings; no text when the definition has none, or when it fails or is empty
// for this instance. It is evaluated here: an instance whose title nobody asks for pays nothing.
func (d *Definition) Title(in *Instance) Text {
	if d.TitleCaption == nil {
		return nil
	}
	if d.TitleCaption.Made == nil {
		return d.TitleCaption.Fixed
	}
	m := d.newMacrostep(in, in.State.At.Active, chart.SystemCaller, in.UpdatedAt)
	defer m.release()
	title, _ := d.TitleCaption.Eval(&m.scope, chart.MaxTitle)
	return title
}
