import {
  ADDITIONAL_PROPERTY_FLAG,
  type ArrayFieldItemTemplateProps,
  type ArrayFieldTemplateProps,
  buttonId,
  canExpand,
  type DescriptionFieldProps,
  descriptionId,
  errorId,
  type FieldErrorProps,
  type FieldHelpProps,
  type FieldTemplateProps,
  helpId,
  type IconButtonProps,
  type MultiSchemaFieldTemplateProps,
  type ObjectFieldTemplateProps,
  type OptionalDataControlsTemplateProps,
  type TemplatesType,
  titleId,
  type WrapIfAdditionalTemplateProps,
} from "@rjsf/utils";
import { ArrowDown, ArrowUp, CircleAlert, Plus, X } from "lucide-react";
import type { MouseEvent, ReactNode } from "react";
import type { JSONObject } from "../api/types";
import { language, t } from "../text";
import { oneOf } from "./titles";
import { readable } from "../words";
import { Sums, sumsOf } from "./lines";
import { lineColumns } from "./numbers";
import { BaseInput, isGroup } from "./widgets";

// How the parts of a form are put together. All texts of a template are shown as
// text; class names and styles that its layout hints name are passed over.

/** A label as the template has it, or a member's name made readable. */
function labelText(label: string, schema: { title?: string | undefined }): string {
  return schema.title ? label : readable(label);
}

function Field(props: FieldTemplateProps<JSONObject>) {
  const { id, label, children, errors, help, description, hidden, required, displayLabel, schema, uiSchema, rawErrors } = props;
  if (hidden) {
    return <div hidden>{children}</div>;
  }
  const text = uiSchema?.["ui:title"] ? label : labelText(label, schema);
  const Label = isGroup(schema, uiSchema) ? "span" : "label";
  return (
    <WrapIfAdditional {...props}>
      <div className={rawErrors?.length ? "field field-wrong" : "field"}>
        {displayLabel && (
          <Label className="label" id={`${id}__label`} htmlFor={Label === "label" ? id : undefined}>
            {text}
            {!required && <span className="label-note"> {t("optional")}</span>}
          </Label>
        )}
        {displayLabel && description}
        {children}
        {errors}
        {help}
      </div>
    </WrapIfAdditional>
  );
}

function Description({ id, description }: DescriptionFieldProps<JSONObject>) {
  return description ? (
    <p id={id} className="field-help">
      {description}
    </p>
  ) : null;
}

function FieldFaults({ errors, fieldPathId }: FieldErrorProps<JSONObject>) {
  const texts = (errors ?? []).filter((text) => typeof text === "string");
  return texts.length === 0 ? null : (
    <p id={errorId(fieldPathId)} className="field-fault">
      <CircleAlert aria-hidden />
      {texts.join(" ")}
    </p>
  );
}

function Help({ help, fieldPathId }: FieldHelpProps<JSONObject>) {
  return help ? (
    <p id={helpId(fieldPathId)} className="field-help">
      {help}
    </p>
  ) : null;
}

function ObjectFields(props: ObjectFieldTemplateProps<JSONObject>) {
  const { description, disabled, readonly, fieldPathId, formData, onAddProperty, optionalDataControl, properties, required, schema, title, uiSchema } = props;
  const content = (
    <>
      {optionalDataControl}
      {properties.map((property) => property.content)}
      {canExpand(schema, uiSchema, formData) && (
        <button type="button" id={buttonId(fieldPathId, "add")} className="button button-plain button-small" onClick={onAddProperty} disabled={disabled || readonly}>
          <Plus aria-hidden />
          {t("field.addField")}
        </button>
      )}
    </>
  );
  // The page's own heading names the whole form.
  if (fieldPathId.path.length === 0) {
    return (
      <div id={fieldPathId.$id} className="stack">
        {description && <p className="field-help">{description}</p>}
        {content}
      </div>
    );
  }
  return (
    <fieldset id={fieldPathId.$id} className="group">
      <legend id={titleId(fieldPathId)}>
        {labelText(title, schema)}
        {!required && <span className="label-note"> {t("optional")}</span>}
      </legend>
      {description && (
        <p id={descriptionId(fieldPathId)} className="field-help">
          {description}
        </p>
      )}
      <div className="stack">{content}</div>
    </fieldset>
  );
}

function List(props: ArrayFieldTemplateProps<JSONObject[]>) {
  const { canAdd, disabled, readonly, fieldPathId, items, onAddClick, optionalDataControl, required, schema, title, rawErrors, registry, formData, uiSchema } = props;
  const columns = lineColumns(schema, registry.rootSchema, uiSchema);
  const add = (event: MouseEvent<HTMLButtonElement>) => {
    onAddClick(event);
    afterwards(event.currentTarget.closest("fieldset"), ":scope > .stack > .item:last-child :is(input, select, textarea)");
  };
  return (
    <fieldset id={fieldPathId.$id} className={["group", rawErrors?.length ? "group-wrong" : "", columns ? "lines" : ""].join(" ").trim()}>
      <legend id={titleId(fieldPathId)}>
        {labelText(title, schema)}
        {!required && <span className="label-note"> {t("optional")}</span>}
      </legend>
      {schema.description && (
        <p id={descriptionId(fieldPathId)} className="field-help">
          {schema.description}
        </p>
      )}
      {optionalDataControl}
      {columns && items.length > 0 && (
        <div className="line-heads" aria-hidden="true">
          {columns.map((column) => (
            <span key={column.name} className={column.numeric ? "numeric" : undefined}>
              {column.title}
            </span>
          ))}
        </div>
      )}
      {items.length > 0 && <div className="stack">{items}</div>}
      {columns && <Sums names={sumsOf(uiSchema)} columns={columns} rows={formData ?? []} />}
      {canAdd && (
        <button type="button" id={buttonId(fieldPathId, "add")} className="button button-plain button-small" onClick={add} disabled={disabled || readonly}>
          <Plus aria-hidden />
          {t("field.add", { name: entryName(labelText(title, schema)) })}
        </button>
      )}
    </fieldset>
  );
}

/** Moves the focus to where a person goes on, when the list has been drawn anew. */
function afterwards(around: Element | null | undefined, selector: string) {
  requestAnimationFrame(() => around?.querySelector<HTMLElement>(selector)?.focus());
}

/** What a button adds: "item" in English, and German keeps its capitals. */
const entryName = (list: string) => (language() === "en" ? oneOf(list).toLowerCase() : list);

function ListItem({ children, buttonsProps, hasToolbar }: ArrayFieldItemTemplateProps<JSONObject>) {
  const { disabled, readonly, hasMoveDown, hasMoveUp, hasRemove, index, onMoveDownItem, onMoveUpItem, onRemoveItem } = buttonsProps;
  const off = disabled || readonly;
  const remove = (event: MouseEvent<HTMLButtonElement>) => {
    onRemoveItem(event);
    afterwards(event.currentTarget.closest(".item")?.closest("fieldset"), ":scope > .button");
  };
  const tool = (sign: ReactNode, words: string, onClick: (event: MouseEvent<HTMLButtonElement>) => void, possible: boolean) => (
    <button type="button" className="button button-quiet button-round button-small" aria-label={words} title={words} onClick={onClick} disabled={off || !possible}>
      {sign}
    </button>
  );
  return (
    <div className="item">
      <span className="item-number" aria-hidden="true">
        {index + 1}
      </span>
      <div className="item-fields">{children}</div>
      {hasToolbar && (
        <div className="item-tools">
          {(hasMoveUp || hasMoveDown) && tool(<ArrowUp aria-hidden />, t("field.up", { number: index + 1 }), onMoveUpItem, hasMoveUp)}
          {(hasMoveUp || hasMoveDown) && tool(<ArrowDown aria-hidden />, t("field.down", { number: index + 1 }), onMoveDownItem, hasMoveDown)}
          {hasRemove && tool(<X aria-hidden />, t("field.remove", { number: index + 1 }), remove, true)}
        </div>
      )}
    </div>
  );
}

/** A member that the person has added: its name can be changed, too. */
function WrapIfAdditional(props: WrapIfAdditionalTemplateProps<JSONObject>) {
  const { id, label, children, schema, disabled, readonly, onKeyRenameBlur, onRemoveProperty } = props;
  if (!(ADDITIONAL_PROPERTY_FLAG in schema)) {
    return <>{children}</>;
  }
  return (
    <div className="item">
      <div className="item-fields stack">
        <label className="field">
          <span className="label">{t("field.fieldName")}</span>
          <input type="text" key={label} id={`${id}-key`} defaultValue={label} onBlur={onKeyRenameBlur} disabled={disabled || readonly} />
        </label>
        {children}
      </div>
      <div className="item-tools">
        <button type="button" className="button button-quiet button-round button-small" aria-label={t("field.removeNamed", { name: label })} onClick={onRemoveProperty} disabled={disabled || readonly}>
          <X aria-hidden />
        </button>
      </div>
    </div>
  );
}

function Alternatives({ selector, optionSchemaField }: MultiSchemaFieldTemplateProps<JSONObject>) {
  return (
    <div className="stack">
      {selector}
      {optionSchemaField}
    </div>
  );
}

function OptionalData({ label, onAddClick, onRemoveClick }: OptionalDataControlsTemplateProps<JSONObject>) {
  const act = onAddClick ?? onRemoveClick;
  return act ? (
    <button type="button" className="button button-plain button-small" onClick={act}>
      {label}
    </button>
  ) : (
    <em>{label}</em>
  );
}

/** Stands for the library's buttons with pictures that other parts still use. */
function SmallButton({ id, title, disabled, onClick }: IconButtonProps<JSONObject>) {
  return (
    <button type="button" id={id} className="button button-plain button-small" disabled={disabled} onClick={onClick}>
      {title ?? t("field.change")}
    </button>
  );
}

export const templates: Partial<Omit<TemplatesType<JSONObject>, "ButtonTemplates">> & { ButtonTemplates: Partial<TemplatesType<JSONObject>["ButtonTemplates"]> } = {
  FieldTemplate: Field,
  DescriptionFieldTemplate: Description,
  FieldErrorTemplate: FieldFaults,
  FieldHelpTemplate: Help,
  ObjectFieldTemplate: ObjectFields,
  ArrayFieldTemplate: List as unknown as TemplatesType<JSONObject>["ArrayFieldTemplate"],
  ArrayFieldItemTemplate: ListItem,
  BaseInputTemplate: BaseInput,
  MultiSchemaFieldTemplate: Alternatives,
  OptionalDataControlsTemplate: OptionalData,
  WrapIfAdditionalTemplate: WrapIfAdditional,
  ButtonTemplates: {
    AddButton: SmallButton,
    ClearButton: SmallButton,
    CopyButton: SmallButton,
    MoveDownButton: SmallButton,
    MoveUpButton: SmallButton,
    RemoveButton: SmallButton,
  },
};
