import { useTranslation } from "react-i18next";
import { i18n } from "../../text";
import { de } from "./de";
import { en } from "./en";

// Both languages come with the pages of operations: together they are as large as
// one round trip is long.
i18n.addResourceBundle("en", "operations", en);
i18n.addResourceBundle("de", "operations", de);

/** The texts of operations. */
export const useText = () => useTranslation("operations").t;
export type Translate = ReturnType<typeof useText>;
