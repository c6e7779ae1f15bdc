import { type CalendarDate, parseDate } from "@internationalized/date";
import type { BaseInputTemplateProps, WidgetProps } from "@rjsf/utils";
import { CalendarDays, ChevronLeft, ChevronRight } from "lucide-react";
import { type AriaAttributes, useEffect, useRef, useState } from "react";
import { Button, Calendar, CalendarCell, CalendarGrid, DateInput, DatePicker, DateSegment, Dialog, Group, Heading, Popover } from "react-aria-components";
import type { JSONObject } from "../api/types";
import { locale, t } from "../text";
import { formatAmount } from "../words";
import { amountIn } from "./numbers";

// Numbers and days as the reader's locale writes them. What is typed is data at
// once, key by key, so that a draft never lacks the last field.

const shownOf = (value: unknown, currency: string) => (typeof value === "number" ? formatAmount(value, currency) : value === undefined || value === null ? "" : String(value));

export function NumberInput(props: BaseInputTemplateProps<JSONObject> & AriaAttributes) {
  const { id, value, disabled, readonly, options, onChange, onBlur, onFocus, placeholder, schema } = props;
  const currency = typeof options.currency === "string" ? options.currency : "";
  const [text, setText] = useState(() => shownOf(value, currency));
  const own = useRef<unknown>(value);
  const typing = useRef(false);
  // Values that come from elsewhere, a default or another draft. NB: the form library
  // makes another text of one that is no number; what is being typed stays.
  useEffect(() => {
    if (value !== own.current && !typing.current) {
      own.current = value;
      setText(shownOf(value, currency));
    }
  }, [value, currency]);
  const change = (next: string) => {
    setText(next);
    // NB: what is no number stays as it is written, and is said to be none.
    const read = next.trim() === "" ? options.emptyValue : (amountIn(next, locale(), currency) ?? next);
    own.current = read;
    onChange(read);
  };
  return (
    <input
      id={id}
      name={id}
      type="text"
      inputMode={schema.type === "integer" ? "numeric" : "decimal"}
      className="numeric"
      autoComplete="off"
      placeholder={placeholder}
      disabled={disabled}
      readOnly={readonly}
      value={text}
      aria-describedby={props["aria-describedby"]}
      aria-invalid={props["aria-invalid"]}
      aria-required={props["aria-required"]}
      onChange={(event) => change(event.target.value)}
      onFocus={() => {
        typing.current = true;
        onFocus(id, value);
      }}
      onBlur={() => {
        typing.current = false;
        setText(shownOf(own.current, currency));
        onBlur(id, own.current);
      }}
    />
  );
}

function dayIn(text: unknown): CalendarDate | null {
  try {
    return typeof text === "string" && text !== "" ? parseDate(text) : null;
  } catch {
    return null;
  }
}

/** A day, typed part by part or taken from a calendar. */
export function DateField(props: WidgetProps<JSONObject> & AriaAttributes) {
  const { id, value, disabled, readonly, onChange, onBlur, onFocus, label, options } = props;
  return (
    <DatePicker
      id={id}
      className="date"
      aria-labelledby={`${id}__label`}
      aria-label={label}
      aria-describedby={props["aria-describedby"]}
      isInvalid={props["aria-invalid"] === true}
      isRequired={props["aria-required"] === true}
      validationBehavior="aria"
      isDisabled={disabled ?? false}
      isReadOnly={readonly ?? false}
      shouldForceLeadingZeros
      value={dayIn(value)}
      onChange={(day) => onChange(day ? day.toString() : options.emptyValue)}
      onFocus={() => onFocus(id, value)}
      onBlur={() => onBlur(id, value)}
    >
      <Group className="date-box">
        <DateInput className="date-input">{(segment) => <DateSegment segment={segment} className="date-part" />}</DateInput>
        <Button className="button button-quiet button-round button-small" aria-label={t("field.calendar")}>
          <CalendarDays aria-hidden />
        </Button>
      </Group>
      <Popover className="popover">
        <Dialog className="calendar">
          <Calendar>
            <div className="calendar-head">
              <Button slot="previous" className="button button-quiet button-round button-small">
                <ChevronLeft aria-hidden />
              </Button>
              <Heading />
              <Button slot="next" className="button button-quiet button-round button-small">
                <ChevronRight aria-hidden />
              </Button>
            </div>
            <CalendarGrid>{(date) => <CalendarCell date={date} className="calendar-day" />}</CalendarGrid>
          </Calendar>
        </Dialog>
      </Popover>
    </DatePicker>
  );
}
