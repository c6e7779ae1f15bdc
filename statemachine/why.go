package statemachine

import "time"

// WhyRead is MayRead, with a reason for those who run the service.
func (d *Definition) WhyRead(v View, c *Caller, now time.Time) (may bool, why string) {
	return d.ReadRule.Why(c, v.scope(c, now))
}

// WhySend is MaySend, with a reason for those who run the service.
func (d *Definition) WhySend(v View, c *Caller, now time.Time) (may bool, why string) {
	if d.SendRule == nil {
		may, why = d.WhyRead(v, c, now)
		return may, "as for allow.read: " + why
	}
	return d.SendRule.Why(c, v.scope(c, now))
}
