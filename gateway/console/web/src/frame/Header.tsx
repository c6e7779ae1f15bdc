import { ChevronDown, LogOut } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { messageFor } from "../api/http";
import { signOut } from "../api/session";
import { type Caller, mayOperate } from "../api/types";
import { Button } from "../kit/Button";
import { Choices, Item, MenuBox } from "../kit/Menu";
import { Notice } from "../kit/Notice";
import { Initials } from "../kit/Person";
import { basePath, Link, useAddress } from "../navigate";
import { parseRoute } from "../route";
import { chooseLanguage, type Language, language, languages } from "../text";
import { chooseLooks, chosenLooks, type Looks } from "./looks";

/** The top of every page: where one is at home, and who one is. */
export function Header({ caller }: { caller: Caller | null }) {
  const { t } = useTranslation();
  const { page } = parseRoute(new URL(useAddress(), window.location.href).pathname, basePath());
  const [fault, setFault] = useState("");
  const leave = async () => {
    try {
      await signOut();
      window.location.assign(new URL("login", document.baseURI));
    } catch (cause) {
      setFault(messageFor(cause));
    }
  };
  return (
    <header className="top">
      <div className="top-inside">
        <Link to="" className="brand">
          <Mark />
          {t("product")}
        </Link>
        {caller && mayOperate(caller) && (
          <nav className="top-links" aria-label={t("menu.pages")}>
            <Link to="" className="top-link" aria-current={page === "portal" ? "page" : undefined}>
              {t("work.title")}
            </Link>
            <Link to="operations" className="top-link" aria-current={page === "operations" ? "page" : undefined}>
              {t("menu.operations")}
            </Link>
          </nav>
        )}
        {caller && <UserMenu caller={caller} onLeave={leave} />}
      </div>
      {fault !== "" && (
        <Notice tone="bad" title={t("menu.stillSignedIn")} alert>
          <p>{fault}</p>
        </Notice>
      )}
    </header>
  );
}

function UserMenu({ caller, onLeave }: { caller: Caller; onLeave: () => Promise<void> }) {
  const { t } = useTranslation();
  const [looks, setLooks] = useState(chosenLooks);
  const allLooks = (["system", "light", "dark"] as const).map((id) => ({ id, name: t(`menu.${id}`) }));
  return (
    <MenuBox
      label={t("menu.account")}
      onAction={(key) => key === "leave" && void onLeave()}
      trigger={
        <Button kind="quiet">
          <Initials name={caller.name} />
          <span className="visually-hidden">{t("menu.account")}: </span>
          <span className="user-name">{caller.name}</span>
          <ChevronDown aria-hidden />
        </Button>
      }
    >
      <Choices title={t("menu.language")} options={languages} chosen={[language()]} onChoose={([id]) => void chooseLanguage(id as Language)} />
      <Choices
        title={t("menu.looks")}
        options={allLooks}
        chosen={[looks]}
        onChoose={([id]) => {
          chooseLooks(id as Looks);
          setLooks(id as Looks);
        }}
      />
      <Item id="leave" name={t("menu.signOut")} sign={<LogOut aria-hidden />} />
    </MenuBox>
  );
}

/** Four actors and what goes between them. */
function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" className="mark-ground" />
      <path d="M10.5 12.5v7M21.5 12.5v7M13 9.5h6M13 22.5h6" className="mark-lines" />
      <circle cx="10.5" cy="9.5" r="3" className="mark-dots" />
      <circle cx="21.5" cy="9.5" r="3" className="mark-dots" />
      <circle cx="10.5" cy="22.5" r="3" className="mark-dots" />
      <circle cx="21.5" cy="22.5" r="3" className="mark-dots" />
    </svg>
  );
}
