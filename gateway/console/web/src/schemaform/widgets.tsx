import {
  type BaseInputTemplateProps,
  descriptionId,
  enumOptionSelectedValue,
  enumOptionsDeselectValue,
  enumOptionsIsSelected,
  enumOptionsSelectValue,
  enumOptionValueDecoder,
  enumOptionValueEncoder,
  errorId,
  examplesId,
  getInputProps,
  getUiOptions,
  helpId,
  optionId,
  type RegistryWidgetsType,
  type UiSchema,
  type WidgetProps,
} from "@rjsf/utils";
import type { JSONObject } from "../api/types";
import { t } from "../text";
import { readable } from "../words";
import { DateField, NumberInput } from "./values";

// The input elements. Each says which texts describe it and whether its value
// is wrong, so that a screen reader says it too.

type Props = WidgetProps<JSONObject>;

/** Whether a field is several inputs, whose label is a label of them all. */
export function isGroup(schema: object, uiSchema: UiSchema<JSONObject> | undefined): boolean {
  const { widget } = getUiOptions(uiSchema);
  return widget === "radio" || widget === "checkboxes" || ("type" in schema && schema.type === "array");
}

/** The attributes that tie an input to the texts around it. */
function described({ id, schema, options, rawErrors, required }: Pick<Props, "id" | "schema" | "options" | "rawErrors" | "required">) {
  const wrong = (rawErrors?.length ?? 0) > 0;
  const texts = [
    (options.description ?? schema.description) ? descriptionId(id) : "",
    wrong ? errorId(id) : "",
    options.help ? helpId(id) : "",
  ].filter((text) => text !== "");
  return {
    "aria-describedby": texts.length > 0 ? texts.join(" ") : undefined,
    "aria-invalid": wrong || undefined,
    "aria-required": required || undefined,
  };
}

export function BaseInput(props: BaseInputTemplateProps<JSONObject>) {
  const { id, value, readonly, disabled, onBlur, onFocus, onChange, onChangeOverride, options, schema, type, placeholder } = props;
  const { type: inputType, step, min, max, autoComplete } = getInputProps(schema, type, options);
  if ((schema.type === "number" || schema.type === "integer") && inputType === "number") {
    return <NumberInput {...props} {...described(props)} />;
  }
  const examples = Array.isArray(schema.examples) ? schema.examples : [];
  return (
    <>
      <input
        id={id}
        name={id}
        type={inputType}
        step={step}
        min={min}
        max={max}
        autoComplete={autoComplete ?? "off"}
        list={examples.length > 0 ? examplesId(id) : undefined}
        placeholder={placeholder}
        readOnly={readonly}
        disabled={disabled}
        value={value ?? ""}
        {...described(props)}
        onChange={onChangeOverride ?? ((event) => onChange(event.target.value === "" ? options.emptyValue : event.target.value))}
        onBlur={(event) => onBlur(id, event.target.value)}
        onFocus={(event) => onFocus(id, event.target.value)}
      />
      {examples.length > 0 && (
        <datalist id={examplesId(id)}>
          {examples.map((example) => (
            <option key={String(example)}>{String(example)}</option>
          ))}
        </datalist>
      )}
    </>
  );
}

function Lines(props: Props) {
  const { id, value, readonly, disabled, onBlur, onFocus, onChange, options, schema, placeholder } = props;
  return (
    <>
      <textarea
        id={id}
        name={id}
        rows={typeof options.rows === "number" ? options.rows : 4}
        placeholder={placeholder}
        readOnly={readonly}
        disabled={disabled}
        value={value ?? ""}
        {...described(props)}
        onChange={(event) => onChange(event.target.value === "" ? options.emptyValue : event.target.value)}
        onBlur={(event) => onBlur(id, event.target.value)}
        onFocus={(event) => onFocus(id, event.target.value)}
      />
      {schema.maxLength !== undefined && <Remaining used={[...String(value ?? "")].length} most={schema.maxLength} />}
    </>
  );
}

/** Shown when the end is near; the fault itself is said when submitting. */
function Remaining({ used, most }: { used: number; most: number }) {
  return used < most * 0.8 ? null : (
    <p className={used > most ? "remaining remaining-over" : "remaining"}>
      {t("field.characters", { used, most })}
    </p>
  );
}

function Select(props: Props) {
  const { id, options, value, disabled, readonly, multiple = false, onChange, onBlur, onFocus, placeholder, schema, label, hideLabel } = props;
  const { enumOptions, enumDisabled, emptyValue } = options;
  const read = (select: HTMLSelectElement) =>
    enumOptionValueDecoder(multiple ? Array.from(select.selectedOptions, (option) => option.value) : select.value, enumOptions, "indexed", emptyValue);
  return (
    <select
      id={id}
      name={id}
      multiple={multiple}
      disabled={disabled || readonly}
      value={enumOptionSelectedValue(value, enumOptions, multiple, "indexed", multiple ? [] : "") as string | string[]}
      aria-label={hideLabel || id.endsWith("_select") ? label || t("field.type") : undefined}
      {...described(props)}
      onChange={(event) => onChange(read(event.target))}
      onBlur={(event) => onBlur(id, read(event.target))}
      onFocus={(event) => onFocus(id, read(event.target))}
    >
      {!multiple && schema.default === undefined && <option value="">{placeholder || t("field.choose")}</option>}
      {enumOptions?.map((option, index) => (
        <option key={String(index)} value={enumOptionValueEncoder(option.value, index, "indexed")} disabled={enumDisabled?.includes(option.value)}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

function Radios(props: Props) {
  const { id, options, value, disabled, readonly, onChange, onBlur, onFocus } = props;
  return (
    <div className="options" id={id} role="radiogroup" aria-labelledby={`${id}__label`} {...described(props)}>
      {options.enumOptions?.map((option, index) => (
        <label key={String(index)} className="option">
          <input
            type="radio"
            id={optionId(id, index)}
            name={id}
            checked={enumOptionsIsSelected(option.value, value)}
            disabled={disabled || readonly || options.enumDisabled?.includes(option.value)}
            onChange={() => onChange(option.value)}
            onBlur={() => onBlur(id, value)}
            onFocus={() => onFocus(id, value)}
          />
          <span>{option.label}</span>
        </label>
      ))}
    </div>
  );
}

function Checkboxes(props: Props) {
  const { id, options, value, disabled, readonly, onChange, onBlur, onFocus } = props;
  const { enumOptions } = options;
  const chosen: unknown[] = Array.isArray(value) ? value : [];
  const { "aria-describedby": describedBy } = described(props);
  return (
    <div className="options" id={id} role="group" aria-labelledby={`${id}__label`} aria-describedby={describedBy}>
      {enumOptions?.map((option, index) => (
        <label key={String(index)} className="option">
          <input
            type="checkbox"
            id={optionId(id, index)}
            name={id}
            checked={enumOptionsIsSelected(option.value, chosen)}
            disabled={disabled || readonly || options.enumDisabled?.includes(option.value)}
            onChange={(event) => onChange((event.target.checked ? enumOptionsSelectValue : enumOptionsDeselectValue)(String(index), chosen, enumOptions))}
            onBlur={() => onBlur(id, value)}
            onFocus={() => onFocus(id, value)}
          />
          <span>{option.label}</span>
        </label>
      ))}
    </div>
  );
}

function Checkbox(props: Props) {
  const { id, value, disabled, readonly, label, name, schema, options, onChange, onBlur, onFocus } = props;
  const description = options.description ?? schema.description;
  return (
    <>
      <label className="option">
        <input
          type="checkbox"
          id={id}
          name={id}
          checked={value === true}
          disabled={disabled || readonly}
          {...described(props)}
          onChange={(event) => onChange(event.target.checked)}
          onBlur={(event) => onBlur(id, event.target.checked)}
          onFocus={(event) => onFocus(id, event.target.checked)}
        />
        <span>{label === name ? readable(label) : label}</span>
      </label>
      {description && (
        <p id={descriptionId(id)} className="field-help option-help">
          {description}
        </p>
      )}
    </>
  );
}

export const widgets: RegistryWidgetsType<JSONObject> = {
  CheckboxWidget: Checkbox,
  CheckboxesWidget: Checkboxes,
  DateWidget: (props: Props) => <DateField {...props} {...described(props)} />,
  RadioWidget: Radios,
  SelectWidget: Select,
  TextareaWidget: Lines,
};
