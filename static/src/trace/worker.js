// Matches a person's expression beside the page, which goes on whatever the expression costs.
import { answer } from "../lib/calls.js";
import { matching } from "./matching.js";

answer(matching);
